// What a line makes of the standard library, of which it is told as that line's.
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <unordered_map>
#include <vector>

using Table = std::unordered_map<uint32_t, uint32_t>;

static void probe(const Table &table, std::vector<uint64_t> &counts, unsigned id) {
    for (uint32_t key = 0; key < 40000; key++) {
        auto at = table.find(key % 5000);                 // line: found
        if (at != table.end()) counts[id] += at->second; // line: counted
    }
}

int main() {
    Table table;
    std::vector<uint64_t> counts(2);
    for (uint32_t key = 0; key < 5000; key++) table.emplace(key, 1); // line: made
    char *block = new char[1 << 20];
    memset(block, 1, 1 << 20); // line: filled
    std::thread one(probe, std::cref(table), std::ref(counts), 0), other(probe, std::cref(table), std::ref(counts), 1);
    one.join();
    other.join();
    uint64_t all = counts[0] + counts[1] + uint64_t(block[4096]);
    delete[] block;
    return all == 80001 ? 0 : 1;
}
