// TBB: tasks that last until the input ends, so that all workers have one.
#include <iostream>
#include <oneapi/tbb.h>
#include <unistd.h>

int main() {
    static char byte;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 4);
    tbb::task_arena arena(4);
    arena.execute([] {
        tbb::parallel_for(
            0, 24,
            [](int) {
                while (read(0, &byte, 1) > 0) {}
            },
            tbb::simple_partitioner());
    });
    std::cout << tbb::info::default_concurrency() << "\n";
}
