// One full sweep over a sparse MDP as one would write it in C++: the yardstick of benchmarks/large.py.
// g++ -O3 -march=native -shared -fPIC -pthread sweep.cpp

#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

static void part(int64_t first, int64_t last, int64_t actions, const uint32_t* starts, const uint32_t* columns,
                 const double* chances, const double* reward, double discount, const double* values, double* best,
                 uint32_t* policy, double* range) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (int64_t s = first; s < last; ++s) {
        double most = -std::numeric_limits<double>::infinity();
        uint32_t choice = 0;
        for (int64_t a = 0; a < actions; ++a) {
            const int64_t line = s * actions + a;
            double total = 0;
            for (uint32_t k = starts[line]; k < starts[line + 1]; ++k) total += chances[k] * values[columns[k]];
            const double q = reward[line] + discount * total;
            if (q > most) {
                most = q;
                choice = static_cast<uint32_t>(a);
            }
        }
        best[s] = most;
        policy[s] = choice;
        low = std::min(low, most - values[s]);
        high = std::max(high, most - values[s]);
    }
    range[0] = low;
    range[1] = high;
}

extern "C" void sweep(int64_t states, int64_t actions, const uint32_t* starts, const uint32_t* columns,
                      const double* chances, const double* reward, double discount, const double* values,
                      double* best, uint32_t* policy, double* range, int64_t threads) {
    std::vector<double> ranges(2 * threads);
    std::vector<std::thread> pool;
    for (int64_t t = 0; t < threads; ++t)
        pool.emplace_back(part, states * t / threads, states * (t + 1) / threads, actions, starts, columns, chances,
                          reward, discount, values, best, policy, &ranges[2 * t]);
    for (auto& thread : pool) thread.join();
    range[0] = ranges[0];
    range[1] = ranges[1];
    for (int64_t t = 1; t < threads; ++t) {
        range[0] = std::min(range[0], ranges[2 * t]);
        range[1] = std::max(range[1], ranges[2 * t + 1]);
    }
}
