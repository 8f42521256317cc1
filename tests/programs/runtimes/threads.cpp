// std::thread: a pool whose members each start a helper, until the input ends.
#include "live.h"

#include <iostream>
#include <thread>
#include <vector>

static void rest() {
    static char byte;
    while (read(0, &byte, 1) > 0) {}
    live(250);
}

int main() {
    std::vector<std::thread> pool;
    for (int i = 0; i < 6; i++)
        pool.emplace_back([] {
            std::thread helper(rest);
            rest();
            helper.join();
        });
    for (auto &thread : pool) thread.join();
    std::cout << std::thread::hardware_concurrency() << "\n";
}
