// TBB: tasks that are long enough for all workers to be awake at once.
#include <chrono>
#include <iostream>
#include <oneapi/tbb.h>
#include <thread>

int main() {
    using namespace std::chrono_literals;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 4);
    tbb::task_arena arena(4);
    arena.execute(
        [] { tbb::parallel_for(0, 24, [](int) { std::this_thread::sleep_for(60ms); }, tbb::simple_partitioner()); });
    std::cout << tbb::info::default_concurrency() << "\n";
}
