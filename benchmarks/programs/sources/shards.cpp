// A store in shards, each of a thread of its own; two clients ask them through rings, and poll.
//
//     shards [shards=6] [requests of each client=60000]
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

constexpr int clients = 2;
constexpr uint64_t slots = 256, keys = 12000;

struct Ring {
    alignas(64) std::atomic<uint64_t> written{0};
    alignas(64) std::atomic<uint64_t> read{0};
    alignas(64) uint64_t slot[slots];

    void put(uint64_t key) {
        while (written - read.load(std::memory_order_acquire) == slots) sched_yield();
        slot[written % slots] = key;
        written.store(written + 1, std::memory_order_release);
    }

    bool take(uint64_t &key) {
        if (read == written.load(std::memory_order_acquire)) return false;
        key = slot[read % slots];
        read.store(read + 1, std::memory_order_release);
        return true;
    }
};

int main(int argc, char **argv) {
    int shards = argc > 1 ? atoi(argv[1]) : 6;
    long requests = argc > 2 ? atol(argv[2]) : 60000;
    std::vector<Ring> rings(shards * clients);
    std::atomic<int> asking{clients};
    std::atomic<long> found{0};
    auto serve = [&](int shard) {
        std::unordered_map<uint64_t, std::string> values;
        for (uint64_t key = 0; key < keys; key++) values[key * shards + shard] = std::string(200, 'a');
        for (bool last = false; !last;) {
            last = asking == 0;
            bool idle = true;
            for (int client = 0; client < clients; client++)
                for (uint64_t key; rings[shard * clients + client].take(key); idle = last = false) {
                    for (char &one : values.at(key)) one ^= 1;
                    found++;
                }
            if (idle) sched_yield();
        }
    };
    auto ask = [&](int client) {
        uint64_t random = 12345 + client;
        for (long request = 0; request < requests; request++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint64_t key = (random >> 33) % (keys * shards);
            rings[key % shards * clients + client].put(key);
        }
        asking--;
    };
    std::vector<std::thread> threads;
    for (int shard = 0; shard < shards; shard++) threads.emplace_back(serve, shard);
    for (int client = 0; client < clients; client++) threads.emplace_back(ask, client);
    for (auto &thread : threads) thread.join();
    printf("checked %ld\n", found.load());
    return found == clients * requests ? 0 : 1;
}
