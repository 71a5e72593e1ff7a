// Many small MDPs as one would write them in C++: the yardstick of benchmarks/yardstick.py.
// g++ -O3 -march=native -shared -fPIC -pthread -DSTATES=10 -DACTIONS=2 small.cpp
//
// The algorithm of certeq.planners.compiled, with sizes that the compiler knows: eight MDPs per register, policy iteration
// from a few sweeps, elimination without pivoting in blocks of 2 x 2, each strength from the plan of the one before, and a
// policy valued in the truth only if it is not the one that was valued last. Rows are taken for granted and not checked.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

constexpr int S = STATES, A = ACTIONS, W = 8, SWEEPS = 3;
static_assert(S % 2 == 0 && S >= 8, "blocks of 2 x 2, and lines of at least one register");
constexpr double TIE = 1e-10, ROUNDING = 1e-13;
typedef double Lanes __attribute__((vector_size(64)));
typedef double Loose __attribute__((vector_size(64), aligned(8)));
typedef int64_t Whole __attribute__((vector_size(64)));
typedef int64_t LooseWhole __attribute__((vector_size(64), aligned(8)));

static inline Lanes fill(double x) { return Lanes{x, x, x, x, x, x, x, x}; }
static inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
static inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
static inline bool any(Whole mask) {
#ifdef __AVX512F__
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#else
    int64_t found = 0;
    for (int i = 0; i < W; ++i) found |= mask[i];
    return found != 0;
#endif
}

static inline void turn(Lanes* x) {  // 8 x 8, three rounds of exchanging halves
    for (int half = 1; half < W; half *= 2)
        for (int i = 0; i < W; ++i) {
            if (i & half) continue;
            Whole first, second;
            for (int j = 0; j < W; ++j) {
                first[j] = j & half ? j - half + W : j;
                second[j] = j & half ? j + W : j + half;
            }
            const Lanes low = x[i], high = x[i + half];
            x[i] = __builtin_shuffle(low, high, first);
            x[i + half] = __builtin_shuffle(low, high, second);
        }
}

static inline Lanes read(const double* from) { return *reinterpret_cast<const Loose*>(from); }
static inline Lanes read(const int64_t* from) {
    return __builtin_convertvector(*reinterpret_cast<const LooseWhole*>(from), Lanes);
}

template <int M, typename Number>
static inline void gather(const Number* const* lines, Lanes* out) {
    for (int column = 0; column < M; column += W) {
        const int at = std::min(column, M - W);
        Lanes x[W];
        for (int lane = 0; lane < W; ++lane) x[lane] = read(lines[lane] + at);
        turn(x);
        for (int j = 0; j < W; ++j) out[at + j] = x[j];
    }
}

template <int M>
static inline void scatter(const Lanes* from, double* const* lines) {
    for (int column = 0; column < M; column += W) {
        const int at = std::min(column, M - W);
        Lanes x[W];
        for (int j = 0; j < W; ++j) x[j] = from[at + j];
        turn(x);
        for (int lane = 0; lane < W; ++lane) *reinterpret_cast<Loose*>(lines[lane] + at) = x[lane];
    }
}

template <int M>
static inline void scatter(const Lanes* from, int64_t* const* lines) {
    for (int column = 0; column < M; column += W) {
        const int at = std::min(column, M - W);
        Lanes x[W];
        for (int j = 0; j < W; ++j) x[j] = from[at + j];
        turn(x);
        for (int lane = 0; lane < W; ++lane)
            *reinterpret_cast<LooseWhole*>(lines[lane] + at) = __builtin_convertvector(x[lane], Whole);
    }
}

struct alignas(64) Block {  // eight MDPs
    Lanes T[S * A * S], R[S * A], weight[S * A], Q[S * A], D[S * A], B[S], P[S], V[S], M[S * (S + 1)], other;
    Lanes rounding, tie;
    double discount;
    bool uniform;  // whether rows are mixed with the uniform one

    void backup(const Lanes* values) {
        other = fill(0);
        for (int j = 0; j < S; ++j) other += values[j];
        other *= fill(1.0 / S);
        Lanes v[S];
        for (int j = 0; j < S; ++j) v[j] = values[j];
        for (int pair = 0; pair < S * A; ++pair) {
            Lanes future = fill(0);
            for (int j = 0; j < S; ++j) future += T[pair * S + j] * v[j];
            D[pair] = future;
        }
        mix();
    }

    void mix() {  // the rest of a backup, where it is known what to expect after the rows
        Lanes low = fill(std::numeric_limits<double>::infinity()), high = -low;
        const Lanes gamma = fill(discount);
        for (int s = 0; s < S; ++s) {
            Lanes best = fill(-std::numeric_limits<double>::infinity());
            for (int a = 0; a < A; ++a) {
                const int pair = s * A + a;
                Lanes future = D[pair];
                if (uniform) future += weight[pair] * (other - future);
                const Lanes q = R[pair] + gamma * future;
                Q[pair] = q;
                best = larger(q, best);
                low = smaller(q, low);
            }
            B[s] = best;
            high = larger(best, high);
        }
        rounding = fill(ROUNDING) * larger(high, -low);
        tie = rounding + fill(TIE) * (high - low);
    }

    Whole improve() {
        Whole changed = Whole{};
        for (int s = 0; s < S; ++s) {
            const Lanes old = P[s], least = B[s] - rounding;
            Lanes fresh = old, held = old;
            for (int a = A - 1; a >= 0; --a) {
                const Lanes q = Q[s * A + a];
                fresh = q >= least ? fill(a) : fresh;
                held = old == fill(a) ? q : held;
            }
            fresh = held >= least ? old : fresh;
            changed |= fresh != old;
            P[s] = fresh;
        }
        return changed;
    }

    void lowest(Lanes* out) const {
        for (int s = 0; s < S; ++s) {
            Lanes found = fill(0);
            for (int a = A - 1; a >= 0; --a) found = Q[s * A + a] >= B[s] - tie ? fill(a) : found;
            out[s] = found;
        }
    }

    void eliminate() {
        constexpr int C = S + 1;
        for (int k = 0; k < S; k += 2) {
            Lanes *upper = M + k * C, *lower = upper + C;
            Lanes a = upper[k], b = upper[k + 1], c = lower[k], d = lower[k + 1];
            const Lanes scale = fill(1) / (a * d - b * c), e = a;
            a = scale * d, b = -scale * b, c = -scale * c, d = scale * e;
            upper[k] = a, upper[k + 1] = b, lower[k] = c, lower[k + 1] = d;
            for (int i = k + 2; i < S; i += 2) {
                Lanes *here = M + i * C, *there = here + C;
                const Lanes hu = here[k] * a + here[k + 1] * c, hl = here[k] * b + here[k + 1] * d;
                const Lanes tu = there[k] * a + there[k + 1] * c, tl = there[k] * b + there[k + 1] * d;
                for (int j = k + 2; j < C; ++j) {
                    here[j] -= hu * upper[j] + hl * lower[j];
                    there[j] -= tu * upper[j] + tl * lower[j];
                }
            }
        }
        for (int k = S - 2; k >= 0; k -= 2) {
            const Lanes *upper = M + k * C, *lower = upper + C;
            Lanes x = upper[S], y = lower[S];
            for (int j = S - 1; j > k + 1; --j) x -= upper[j] * V[j], y -= lower[j] * V[j];
            V[k] = upper[k] * x + upper[k + 1] * y;
            V[k + 1] = lower[k] * x + lower[k + 1] * y;
        }
    }

    void evaluate(const Lanes* policy) {
        const Lanes gamma = fill(discount);
        for (int s = 0; s < S; ++s) {
            Lanes* row = M + s * (S + 1);
            Lanes pull = weight[s * A], gain = R[s * A];
            for (int a = 1; a < A; ++a) {
                const Whole chosen = policy[s] == fill(a);
                pull = chosen ? weight[s * A + a] : pull;
                gain = chosen ? R[s * A + a] : gain;
            }
            const Lanes keep = gamma * (pull - fill(1)), level = uniform ? gamma * pull * fill(1.0 / S) : fill(0);
            for (int j = 0; j < S; ++j) {
                Lanes entry = T[s * A * S + j];
                for (int a = 1; a < A; ++a) entry = policy[s] == fill(a) ? T[(s * A + a) * S + j] : entry;
                row[j] = keep * entry - level;
            }
            row[s] += fill(1);
            row[S] = gain;
        }
        eliminate();
    }

    void start() {
        for (int s = 0; s < S; ++s) {
            Lanes best = R[s * A];
            for (int a = 1; a < A; ++a) best = larger(R[s * A + a], best);
            B[s] = best;
            P[s] = fill(0);
        }
        for (int sweep = 0; sweep < SWEEPS; ++sweep) {
            Lanes before[S];
            std::memcpy(before, B, sizeof before);
            backup(before);
        }
        improve();
    }

    void iterate() {
        do {
            evaluate(P);
            backup(V);
        } while (any(improve()));
    }
};

template <typename Number>
static inline void lines_of(const Number* table, int64_t length, int64_t first, int64_t last, const Number** lines) {
    for (int lane = 0; lane < W; ++lane) lines[lane] = table + std::min(first + lane, last - 1) * length;
}

template <typename Number>
static inline void lines_of(Number* table, int64_t length, int64_t step, int64_t steps, int64_t first, int64_t last,
                            Number** lines) {
    for (int lane = 0; lane < W; ++lane)
        lines[lane] = table + (std::min(first + lane, last - 1) * steps + step) * length;
}

template <typename Part>
static void share(int64_t count, int64_t threads, Part part) {
    std::vector<std::thread> pool;
    for (int64_t t = 1; t < threads; ++t) pool.emplace_back(part, count * t / threads, count * (t + 1) / threads);
    part(0, count / threads);
    for (auto& thread : pool) thread.join();
}

static void ask(const double* const* lines, int64_t length) {  // for the lines of the next block
    for (int lane = 0; lane < W; ++lane)
        for (int64_t j = 0; j < length; j += W) __builtin_prefetch(lines[lane] + W * length + j, 0, 2);
}

extern "C" void solve(int64_t count, const double* rows, const double* reward, double discount, int64_t* policy,
                      double* values, int64_t threads) {
    share(count, threads, [=](int64_t begin, int64_t end) {
        auto block = std::make_unique<Block>();
        Block& mdp = *block;
        std::fill(mdp.weight, mdp.weight + S * A, fill(0));
        mdp.discount = discount, mdp.uniform = false;
        for (int64_t first = begin; first < end; first += W) {
            const double* lines[W];
            lines_of(reward, S * A, first, end, lines);
            gather<S * A>(lines, mdp.R);
            lines_of(rows, S * A * S, first, end, lines);
            gather<S * A * S>(lines, mdp.T);
            ask(lines, S * A * S);
            mdp.start();
            mdp.iterate();
            Lanes chosen[S];
            mdp.lowest(chosen);
            int64_t* actions[W];
            double* worth[W];
            lines_of(policy, S, 0, 1, first, end, actions);
            lines_of(values, S, 0, 1, first, end, worth);
            scatter<S>(chosen, actions);
            scatter<S>(mdp.V, worth);
        }
    });
}

extern "C" void evaluate(int64_t count, const double* rows, const double* reward, double discount,
                         const int64_t* policy, double* values, int64_t threads) {
    share(count, threads, [=](int64_t begin, int64_t end) {
        auto block = std::make_unique<Block>();
        Block& mdp = *block;
        std::fill(mdp.weight, mdp.weight + S * A, fill(0));
        mdp.discount = discount, mdp.uniform = false;
        for (int64_t first = begin; first < end; first += W) {
            const double* lines[W];
            const int64_t* actions[W];
            lines_of(reward, S * A, first, end, lines);
            gather<S * A>(lines, mdp.R);
            lines_of(policy, S, first, end, actions);
            gather<S>(actions, mdp.P);
            lines_of(rows, S * A * S, first, end, lines);
            gather<S * A * S>(lines, mdp.T);
            ask(lines, S * A * S);
            mdp.evaluate(mdp.P);
            double* worth[W];
            lines_of(values, S, 0, 1, first, end, worth);
            scatter<S>(mdp.V, worth);
        }
    });
}

// Uniform priors of some strengths on some data sets: policies (count, steps, S) and, if there is a truth, losses.
extern "C" void sweep(int64_t count, int64_t steps, const int64_t* counts, const double* strengths,
                      const double* reward, double discount, const double* truth, int64_t* policy, double* values,
                      double* losses, int64_t threads) {
    share(count, threads, [=](int64_t begin, int64_t end) {
        auto block = std::make_unique<Block>(), real = std::make_unique<Block>();
        Block &mdp = *block, &world = *real;
        std::fill(world.weight, world.weight + S * A, fill(0));
        mdp.discount = world.discount = discount, mdp.uniform = true, world.uniform = false;
        Lanes visits[S * A], valued[S], loss = fill(0);
        for (int64_t first = begin; first < end; first += W) {
            const double* lines[W];
            const int64_t* tallies[W];
            lines_of(reward, S * A, first, end, lines);
            gather<S * A>(lines, mdp.R);
            Lanes optimal[S];
            if (truth) {
                std::copy(mdp.R, mdp.R + S * A, world.R);
                lines_of(truth, S * A * S, first, end, lines);
                gather<S * A * S>(lines, world.T);
                ask(lines, S * A * S);
                world.start();
                world.iterate();
                std::copy(world.V, world.V + S, optimal);
            }
            lines_of(counts, S * A * S, first, end, tallies);
            gather<S * A * S>(tallies, mdp.T);
            Lanes total = fill(0);
            for (int pair = 0; pair < S * A; ++pair) {
                Lanes c = fill(0);
                for (int j = 0; j < S; ++j) c += mdp.T[pair * S + j];
                const Whole none = c == fill(0);
                const Lanes scale = fill(1) / (none ? fill(1) : c);
                for (int j = 0; j < S; ++j) mdp.T[pair * S + j] = none ? fill(1.0 / S) : mdp.T[pair * S + j] * scale;
                visits[pair] = c;
                total += c;
            }
            const Lanes mean = total / fill(S * A);
            for (int64_t step = 0; step < steps; ++step) {
                const Lanes magnitude = mean * fill(strengths[step] / (1 - strengths[step]));
                for (int pair = 0; pair < S * A; ++pair) {
                    const Lanes c = visits[pair];
                    mdp.weight[pair] = c == fill(0) ? fill(1) : magnitude / (c + magnitude);
                }
                if (step) {
                    mdp.mix();
                    mdp.improve();
                } else {
                    mdp.start();
                }
                mdp.iterate();
                Lanes chosen[S];
                mdp.lowest(chosen);
                int64_t* actions[W];
                lines_of(policy, S, step, steps, first, end, actions);
                scatter<S>(chosen, actions);
                if (!truth) {
                    double* worth[W];
                    lines_of(values, S, step, steps, first, end, worth);
                    scatter<S>(mdp.V, worth);
                    continue;
                }
                Whole moved = Whole{};
                for (int s = 0; s < S; ++s) moved |= chosen[s] != valued[s];
                if (!step || any(moved)) {
                    std::copy(chosen, chosen + S, valued);
                    world.evaluate(valued);
                    Lanes lost = fill(0);
                    for (int s = 0; s < S; ++s) lost += optimal[s] - world.V[s];
                    loss = lost * fill(1.0 / S);
                }
                for (int lane = 0; lane < W && first + lane < end; ++lane)
                    losses[(first + lane) * steps + step] = loss[lane];
            }
        }
    });
}
