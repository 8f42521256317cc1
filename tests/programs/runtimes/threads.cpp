// std::thread: a pool whose members each start a helper.
#include "live.h"

#include <iostream>
#include <thread>
#include <vector>

int main() {
    std::vector<std::thread> pool;
    for (int i = 0; i < 6; i++)
        pool.emplace_back([] {
            std::thread helper(live, 250);
            live(250);
            helper.join();
        });
    for (auto &thread : pool) thread.join();
    std::cout << std::thread::hardware_concurrency() << "\n";
}
