// Blocks of containers, of new, and of a class: where one is made, a comment says for which variable.
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#define KEEP(memory) __asm__ volatile("" : : "g"(memory) : "memory")

constexpr std::size_t n = 20000;

namespace physics {
struct Body {
    double mass;
    float at[3];
};

static Body sun[8192]; // region: sun Body[8192]

class Grid {
public:
    explicit Grid(std::size_t size) : size_(size) {
        cells_ = new double[size]; // region: cells_ double[]
    }
    ~Grid() { delete[] cells_; }
    void fill() { KEEP(cells_); }

private:
    std::size_t size_;
    double *cells_;
};
} // namespace physics

template <typename T> T *made(std::size_t count) {
    T *memory = static_cast<T *>(::operator new(count * sizeof(T))); // region: memory int[]
    return memory;
}

int main() {
    std::vector<double> grid(n); // region: grid std::vector<double>
    KEEP(grid.data());
    std::vector<physics::Body> bodies; // the next line makes its block
    bodies.resize(n); // region: bodies std::vector<physics::Body>
    KEEP(bodies.data());
    double *plain = new double[n]; // region: plain double[]
    KEEP(plain);
    std::unique_ptr<float[]> owned(new float[n]); // region: owned std::unique_ptr<float[]>
    KEEP(owned.get());
    physics::Grid box(n);
    box.fill();
    int *templated = made<int>(n);
    KEEP(templated);
    KEEP(physics::sun);
    operator delete(templated);
    delete[] plain;
    return 0;
}
