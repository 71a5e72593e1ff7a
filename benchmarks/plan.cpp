// A whole plan for a sparse MDP as one would write it in C++: the yardstick of benchmarks/large.py.
// The algorithm of src/certeq/planners/sparse (full sweeps with MacQueen's bound; in between sweeps, or BiCGStab where
// they mix slowly, on a copy of the policy's rows in single precision), for rows that all have mass 1. Every thread runs
// all of it on its own range of the states; they wait for one another where one needs what the others have written.
// g++ -O3 -march=native -std=c++20 -shared -fPIC -pthread plan.cpp

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace {

const double infinity = std::numeric_limits<double>::infinity();

struct Note {
    alignas(64) double numbers[5];
};

struct Problem {
    int64_t states, actions;
    const uint32_t *starts, *columns;
    const double *chances, *reward;
    double discount, tolerance;
    int64_t threads;
};

struct Shared {
    std::vector<Note> notes[2];  // by turns, so that a thread may go on while another still reads
    std::barrier<> gate;
    std::vector<double> best, x, y, total, d, shadow, p, v;
    std::vector<uint32_t> policy, before, slots, lengths, columns;
    std::vector<float> chances;

    Shared(const Problem& m)
        : gate(m.threads), best(m.states), x(m.states), y(m.states), total(m.states), d(m.states), shadow(m.states),
          p(m.states), v(m.states), policy(m.states, 0), before(m.states, ~0u), slots(m.states + 1, 0),
          lengths(m.states, 0) {
        for (auto& some : notes) some.resize(m.threads);
        for (int64_t s = 0; s < m.states; ++s) {
            uint32_t longest = 0;
            for (int64_t i = s * m.actions; i < (s + 1) * m.actions; ++i)
                longest = std::max(longest, m.starts[i + 1] - m.starts[i]);
            slots[s + 1] = slots[s] + longest;
        }
        columns.resize(slots.back());
        chances.resize(slots.back());
    }
};

struct Worker {
    const Problem& m;
    Shared& g;
    int64_t number, first, last, turn = 0;
    double* values;
    bool slow = false;

    // Put the notes of all threads together: adds up the first `sums` of them, then least and greatest by turns.
    void together(double* mine, int sums, int bounds) {
        auto& notes = g.notes[turn++ & 1];
        std::copy(mine, mine + sums + bounds, notes[number].numbers);
        g.gate.arrive_and_wait();
        for (int i = 0; i < sums + bounds; ++i) {
            double all = notes[0].numbers[i];
            for (int64_t t = 1; t < m.threads; ++t) {
                const double other = notes[t].numbers[i];
                all = i < sums ? all + other : (i - sums) % 2 ? std::max(all, other) : std::min(all, other);
            }
            mine[i] = all;
        }
    }

    double expect(int64_t s, const double* x) const {
        double sum = 0;
        for (uint32_t k = g.slots[s]; k < g.slots[s] + g.lengths[s]; ++k) sum += g.chances[k] * x[g.columns[k]];
        return sum;
    }

    void improve(double keep, double* note) {
        double low = infinity, high = -infinity, bottom = infinity, top = -infinity, moved = 0;
        for (int64_t s = first; s < last; ++s) {
            double most = -infinity, kept = 0;
            uint32_t choice = 0;
            for (int64_t a = 0; a < m.actions; ++a) {
                const int64_t line = s * m.actions + a;
                double sum = 0;
                for (uint32_t k = m.starts[line]; k < m.starts[line + 1]; ++k) sum += m.chances[k] * values[m.columns[k]];
                const double q = m.reward[line] + m.discount * sum;
                if (q > most) most = q, choice = static_cast<uint32_t>(a);
                if (a == g.policy[s]) kept = q;
            }
            if (kept < most - keep) g.policy[s] = choice, ++moved;
            g.best[s] = most;
            low = std::min(low, most - values[s]), high = std::max(high, most - values[s]);
            bottom = std::min(bottom, most), top = std::max(top, most);
        }
        const double mine[] = {moved, low, high, bottom, top};
        std::copy(mine, mine + 5, note);
        together(note, 1, 4);
    }

    void copy_rows() {
        for (int64_t s = first; s < last; ++s)
            if (g.policy[s] != g.before[s]) {
                const int64_t line = s * m.actions + g.policy[s];
                g.lengths[s] = m.starts[line + 1] - m.starts[line];
                for (uint32_t k = 0; k < g.lengths[s]; ++k) {
                    g.columns[g.slots[s] + k] = m.columns[m.starts[line] + k];
                    g.chances[g.slots[s] + k] = static_cast<float>(m.discount * m.chances[m.starts[line] + k]);
                }
                g.before[s] = g.policy[s];
            }
    }

    // (I - P) total = x, roughly; x and y are scratch.
    void correct(double goal) {
        double *x = g.x.data(), *y = g.y.data(), size = 1, rate = 1;
        for (int done = 1; size * rate > goal && done <= 100; ++done) {
            if (slow && bicgstab(x, y, goal)) return;
            double note[] = {infinity, -infinity};
            for (int64_t s = first; s < last; ++s) {
                y[s] = expect(s, x);
                g.total[s] += y[s];
                note[0] = std::min(note[0], y[s]), note[1] = std::max(note[1], y[s]);
            }
            together(note, 0, 2);
            const double middle = (note[0] + note[1]) / 2, left = (note[1] - note[0]) / 2;
            for (int64_t s = first; s < last; ++s) y[s] -= middle;
            g.gate.arrive_and_wait();
            std::swap(x, y);
            rate = left / size, size = left;
            slow |= done >= 3 && size > goal && (rate >= 1 || std::log(goal / size) / std::log(rate) > 12);
        }
    }

    void apply(const double* x, double* y, double* note) {
        note[0] = note[1] = note[2] = 0;
        for (int64_t s = first; s < last; ++s) {
            y[s] = x[s] - expect(s, x);
            note[0] += y[s] * g.shadow[s], note[1] += y[s] * x[s], note[2] += y[s] * y[s];
        }
        together(note, 3, 0);
    }

    bool bicgstab(double* r, double* t, double goal) {
        double *d = g.d.data(), *p = g.p.data(), *v = g.v.data(), *shadow = g.shadow.data(), rho = 0, note[5];
        for (int64_t s = first; s < last; ++s) d[s] = 0, shadow[s] = p[s] = r[s], rho += r[s] * r[s];
        together(&rho, 1, 0);
        for (int step = 0; step < 5000; ++step) {
            apply(p, v, note);
            const double alpha = rho / note[0];
            double rest = 0;
            for (int64_t s = first; s < last; ++s) r[s] -= alpha * v[s], rest += r[s] * shadow[s];
            together(&rest, 1, 0);
            apply(r, t, note);
            const double omega = note[1] / note[2], before = rho;
            rho = rest - omega * note[0];
            const double beta = rho / before * alpha / omega;
            double bounds[] = {infinity, -infinity};
            for (int64_t s = first; s < last; ++s) {
                d[s] += alpha * p[s] + omega * r[s];
                r[s] -= omega * t[s];
                p[s] = r[s] + beta * (p[s] - omega * v[s]);
                bounds[0] = std::min(bounds[0], r[s]), bounds[1] = std::max(bounds[1], r[s]);
            }
            together(bounds, 0, 2);
            if ((bounds[1] - bounds[0]) / 2 <= goal) {
                for (int64_t s = first; s < last; ++s) g.total[s] += d[s] - shadow[s];
                return true;
            }
            if (!std::isfinite(rho) || !std::isfinite(omega)) break;
        }
        for (int64_t s = first; s < last; ++s) r[s] = shadow[s];
        g.gate.arrive_and_wait();
        return false;
    }

    // Sweeps until the bound is met; how many there were.
    int64_t plan() {
        const double gap = 1 - m.discount;
        double keep = 0, least = infinity, forcing = 0.03, last_size = infinity, moved_before = m.states;
        for (int64_t iteration = 1;; ++iteration) {
            double note[5];
            improve(keep, note);
            const double moved = note[0], shift = (note[1] + note[2]) / 2 / gap, size = (note[2] - note[1]) / 2;
            const double scale = std::max(std::abs(note[3] + shift), std::abs(note[4] + shift));
            const double goal = m.tolerance * scale * gap;
            if (!(size < 0.5 * last_size || moved < 0.95 * moved_before)) forcing = std::max(0.1 * forcing, 1e-5);
            least = std::min(least, size), last_size = size, moved_before = moved;
            if (size <= goal || iteration == 1000) {
                for (int64_t s = first; s < last; ++s) values[s] += shift;
                return iteration;
            }
            keep = std::max(0.1 * goal, 2e-15 * scale);
            const double wanted = iteration == 1 ? 0.1 : moved > 0 ? forcing : 0.0;
            const double part = std::max({wanted, 0.3 * goal / size, 1e-5});
            copy_rows();
            for (int64_t s = first; s < last; ++s)
                g.total[s] = g.x[s] = (g.best[s] - values[s] - shift * gap) / size;
            g.gate.arrive_and_wait();
            correct(part);
            for (int64_t s = first; s < last; ++s) values[s] += shift + size * g.total[s];
            g.gate.arrive_and_wait();
        }
    }
};

}  // namespace

extern "C" int64_t plan(int64_t states, int64_t actions, const uint32_t* starts, const uint32_t* columns,
                        const double* chances, const double* reward, double discount, double tolerance, double* values,
                        uint32_t* policy, int64_t threads) {
    const Problem problem{states, actions, starts, columns, chances, reward, discount, tolerance, threads};
    Shared shared(problem);
    std::fill(values, values + states, 0.0);
    std::vector<std::thread> pool;
    int64_t sweeps = 0;
    for (int64_t t = 0; t < threads; ++t)
        pool.emplace_back([&, t] {
            Worker worker{problem, shared, t, states * t / threads, states * (t + 1) / threads, 0, values};
            const int64_t done = worker.plan();
            if (t == 0) sweeps = done;
        });
    for (auto& thread : pool) thread.join();
    std::copy(shared.policy.begin(), shared.policy.end(), policy);
    return sweeps;
}
