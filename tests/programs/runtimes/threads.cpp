// std::thread: a pool whose members each start a helper.
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

int main() {
    using namespace std::chrono_literals;
    std::vector<std::thread> pool;
    for (int i = 0; i < 6; i++)
        pool.emplace_back([] {
            std::thread helper([] { std::this_thread::sleep_for(250ms); });
            std::this_thread::sleep_for(250ms);
            helper.join();
        });
    for (auto &thread : pool) thread.join();
    std::cout << std::thread::hardware_concurrency() << "\n";
}
