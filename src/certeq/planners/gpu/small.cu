// Policy iteration for many small MDPs, the twin of certeq/planners/compiled/small.py for a graphics processor.
//
// A lane (a thread of a warp of 32) has one state, S lanes an MDP, and a warp as many MDPs as fit. A lane keeps its line
// of the system I - γP in registers; what lanes tell one another goes through shared memory, where the regularized rows
// stand too: they are mixed while they are read, and exist nowhere else. All lanes of a warp take the same way, so an
// MDP that is done repeats its last step, which changes no bit, until its neighbors are done as well.
//
// S, A: states and actions. GS, GA: the target has GS x GA rows (0 if nothing is mixed in). GROUPS: MDPs in a warp, which
// is a block. All are constants when this is compiled, so loops can be unrolled and lines stay in registers.
//
// Without CUDA the same text is C++: EACH_STATE is then a loop over the states instead of the lane's own one, and the
// tests compare that with the other engines where there is no graphics processor.

#define TIE 1e-10  // as in certeq.planners.backup: what counts as a tie
#define ROUNDING 1e-13
#define MASS_TOLERANCE 1e-9  // as in certeq.model.kernel
#define START_SWEEPS 3       // value-iteration sweeps before the first policy is evaluated
#define LINE (S | 1)         // room between rows: odd, so that lanes that read one row each meet no bank conflict
#define ROOM (A * S * LINE + 4 * S + 2)  // doubles of shared memory for one MDP; as in certeq/planners/gpu/kernels.py

#ifdef __CUDACC__
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#define FUNCTION static __device__ __forceinline__
#define OWN 1  // states whose numbers a thread keeps
#define EVERYONE (0xffffffffu >> (32 - GROUPS * S))
#define EACH_STATE for (int s = threadIdx.x % S, own = 0; own < 1; ++own)
#define MEET __syncwarp(EVERYONE)
#define ANYONE(x) __any_sync(EVERYONE, x)
#define KERNEL extern "C" __global__ void __launch_bounds__(32)
#define EACH_MDP                                                          \
    extern __shared__ double rooms[];                                     \
    int group = threadIdx.x / S;                                          \
    whole k = (whole)blockIdx.x * GROUPS + group;                         \
    if (k >= count) k = count - 1; /* past the end, the last one again */ \
    Shared in = Shared::at(rooms + group * ROOM);                         \
    if (group < GROUPS) /* the other lanes have nothing to do */
#define UNROLL _Pragma("unroll")
#define UNROLL_ACTIONS _Pragma("unroll FEW")
#else
#include <cmath>
#define INFINITE INFINITY
#define FUNCTION static
#define OWN S
#define EACH_STATE for (int s = 0, own = 0; s < S; own = ++s)
#define MEET
#define ANYONE(x) (x)
#define KERNEL extern "C" void
#define EACH_MDP                  \
    static double room[ROOM];     \
    Shared in = Shared::at(room); \
    for (whole k = 0; k < count; ++k)
#define UNROLL
#define UNROLL_ACTIONS
using std::fabs, std::fmax, std::isfinite;
#endif

typedef long long whole;
constexpr int FEW = A <= 8 ? A : 1;  // more actions than this are looped over

// The batch: for each operand its entries, and which of them belongs to an MDP.
struct Batch {
    const double *rows;  // (n, S, A, S)
    const whole *rows_of;
    const double *weight;  // (n, S, A)
    const whole *weight_of;
    const double *target;  // (n, GS, GA, S)
    const whole *target_of;
    const double *reward;  // (n, S, A)
    const whole *reward_of;
    const double *discount;  // (n,)
    const whole *discount_of;
    const bool *allowed;  // (n, S, A)
    const whole *allowed_of;
};

// What the lanes of one MDP share.
struct Shared {
    double *T;     // (A, S, LINE): rows of the planned model
    double *V;     // (S,)
    double *each;  // (S,): one number of each state, to find the largest
    double *line;  // (2, S + 1): what is subtracted from all other lines

    FUNCTION Shared at(double *room) {
        return {room, room + A * S * LINE, room + A * S * LINE + S, room + A * S * LINE + 2 * S};
    }
};

// What a lane keeps of its state.
struct State {
    double R[A];  // minus infinity where an action is not allowed
    double Q[A];
    double best;
    int action, lowest;  // the policy, and the lowest of the tied best actions
};

FUNCTION double greatest(const double *mine, Shared to) {
    EACH_STATE to.each[s] = mine[own];
    MEET;
    double found = to.each[0];
    UNROLL for (int j = 1; j < S; ++j) found = fmax(found, to.each[j]);
    MEET;
    return found;
}

// Read the rows of MDP k, mixed, lane next to lane.
FUNCTION void read_rows(const Batch &batch, whole k, Shared to) {
    const double *rows = batch.rows + batch.rows_of[k] * (S * A * S);
#if GS
    const double *weight = batch.weight + batch.weight_of[k] * (S * A);
    const double *target = batch.target + batch.target_of[k] * (GS * GA * S);
#endif
    EACH_STATE {
        UNROLL_ACTIONS for (int pair = 0; pair < S * A; ++pair) {
            int i = pair / A, a = pair % A;
            double p = rows[pair * S + s];
#if GS
            double w = weight[pair], q = target[((GS > 1 ? i : 0) * GA + (GA > 1 ? a : 0)) * S + s];
            p = (1 - w) * p + w * q;
#endif
            to.T[(a * S + i) * LINE + s] = p;
        }
    }
    MEET;
}

// Whether something is not as it should be: rows, rewards, discount, or a state without an action. NaN is bad as well.
FUNCTION bool is_bad(const State *states, Shared in, double discount) {
    double bad[OWN];
    EACH_STATE {
        bool good = discount >= 0 && discount <= 1, some = false;
        UNROLL_ACTIONS for (int a = 0; a < A; ++a) {
            double mass = 0;
            for (int j = 0; j < S; ++j) {
                double p = in.T[(a * S + s) * LINE + j];
                good &= p >= 0;
                mass += p;
            }
            good &= mass <= 1 + 1.001 * MASS_TOLERANCE;  // a little more than the host, which has to say what is wrong
            double r = states[own].R[a];
            good &= isfinite(r) || r == -INFINITE;
            some |= isfinite(r);
        }
        bad[own] = !(good && some);
    }
    return greatest(bad, in) > 0;
}

// Read the rewards of MDP k: infinite where they are no numbers, minus infinity where an action is not allowed.
FUNCTION void read_rewards(const Batch &batch, whole k, State *states) {
    const double *reward = batch.reward + batch.reward_of[k] * (S * A);
    const bool *allowed = batch.allowed + batch.allowed_of[k] * (S * A);
    EACH_STATE UNROLL_ACTIONS for (int a = 0; a < A; ++a) {
        double r = reward[s * A + a];
        bool finite = isfinite(r);
        states[own].R[a] = !finite ? INFINITE : allowed[s * A + a] ? r : -INFINITE;
    }
}

FUNCTION double expect(Shared in, int a, int s) {
    const double *row = in.T + (a * S + s) * LINE;
    double sum = 0;
    UNROLL for (int j = 0; j < S; ++j) sum += row[j] * in.V[j];
    return sum;
}

// Whether, without discounting, some policy may go on forever: the largest set of states that can each stay in the set.
FUNCTION bool is_endless(const State *states, Shared in) {
    double stays[OWN];
    EACH_STATE in.V[s] = 1;
    MEET;
    for (int round = 0; round < S; ++round) {
        EACH_STATE {
            stays[own] = 0;
            for (int a = 0; a < A; ++a)
                if (in.V[s] > 0 && states[own].R[a] > -INFINITE && expect(in, a, s) >= 1 - MASS_TOLERANCE) stays[own] = 1;
        }
        MEET;
        EACH_STATE in.V[s] = stays[own];
        MEET;
    }
    return greatest(stays, in) > 0;
}

// Q = R + γ T V, and the best of it.
FUNCTION void back_up(State *states, Shared in, double discount) {
    EACH_STATE {
        double best = -INFINITE;
        UNROLL_ACTIONS for (int a = 0; a < A; ++a) {
            states[own].Q[a] = states[own].R[a] + discount * expect(in, a, s);
            best = fmax(best, states[own].Q[a]);
        }
        states[own].best = best;
    }
}

// Improve the policy by Q and note the lowest tied actions. Tells whether the policy changed: an action is left only
// for one that is better by more than rounding, so that the iteration must end.
FUNCTION bool choose(State *states, Shared in) {
    double high[OWN], low[OWN], changed[OWN];
    EACH_STATE {
        high[own] = low[own] = -INFINITE;
        UNROLL_ACTIONS for (int a = 0; a < A; ++a) {
            double q = states[own].Q[a];
            high[own] = fmax(high[own], q);
            if (q > -INFINITE) low[own] = fmax(low[own], -q);  // what is not allowed has no say
        }
    }
    double highest = greatest(high, in), lowest = -greatest(low, in);
    double rounding = ROUNDING * fmax(highest, -lowest);  // the larger of |highest| and |lowest|
    double tie = TIE * (highest - lowest) + rounding;
    EACH_STATE {
        State &state = states[own];
        int better = state.action;
        double held = -INFINITE;
        UNROLL_ACTIONS for (int a = A - 1; a >= 0; --a) {
            double q = state.Q[a];
            if (q >= state.best - rounding) better = a;
            if (q >= state.best - tie) state.lowest = a;
            if (a == state.action) held = q;
        }
        changed[own] = held < state.best - rounding;
        if (changed[own] > 0) state.action = better;
    }
    return greatest(changed, in) > 0;
}

// V = the value of the policy: Gauss and Jordan. The lines of I - γP are diagonally dominant, so no pivoting is needed.
FUNCTION void evaluate(const State *states, Shared in, double discount) {
    double M[OWN][S + 1];  // I - γP and, as last column, R
    EACH_STATE {
        const double *row = in.T + (states[own].action * S + s) * LINE;
        UNROLL for (int j = 0; j < S; ++j) M[own][j] = (j == s ? 1.0 : 0.0) - discount * row[j];
        M[own][S] = 0;
        UNROLL_ACTIONS for (int a = 0; a < A; ++a) if (a == states[own].action) M[own][S] = states[own].R[a];
    }
    UNROLL for (int k = 0; k < S; ++k) {
        double *line = in.line + (k % 2) * (S + 1);  // two in turn, so that meeting once a step is enough
        EACH_STATE if (s == k) {
            double scale = 1 / M[own][k];
            UNROLL for (int j = k + 1; j <= S; ++j) line[j] = M[own][j] * scale;
        }
        MEET;
        EACH_STATE {
            double factor = M[own][k];
            UNROLL for (int j = k + 1; j <= S; ++j) {
                M[own][j] = s == k ? line[j] : M[own][j] - factor * line[j];
            }
        }
    }
    EACH_STATE in.V[s] = M[own][S];
    MEET;
}

// Read MDP k, and tell whether something about it is not as it should be.
FUNCTION bool read(const Batch &batch, whole k, Shared to, State *states, double discount) {
    read_rows(batch, k, to);
    read_rewards(batch, k, states);
    bool bad = is_bad(states, to, discount);
    if (ANYONE(discount == 1)) bad |= is_endless(states, to) && discount == 1;
    return bad;
}

FUNCTION void plan_one(const Batch &batch, whole k, Shared in, whole max_iterations, whole *policy, double *values,
                       whole *iterations, double *residual, whole *faults) {
    State states[OWN];
    double difference[OWN], discount = batch.discount[batch.discount_of[k]];
    bool bad = read(batch, k, in, states, discount);
    EACH_STATE {  // the first policy: value iteration from the best immediate rewards
        double best = -INFINITE;
        UNROLL_ACTIONS for (int a = 0; a < A; ++a) best = fmax(best, states[own].R[a]);
        states[own].action = states[own].lowest = 0;
        in.V[s] = best;
    }
    MEET;
    for (int sweep = 0; sweep < START_SWEEPS; ++sweep) {
        back_up(states, in, discount);
        MEET;
        EACH_STATE in.V[s] = states[own].best;
        MEET;
    }
    choose(states, in);

    whole rounds = 1;
    for (whole iteration = 0; iteration < max_iterations; ++iteration) {
        evaluate(states, in, discount);
        back_up(states, in, discount);
        bool changed = choose(states, in) && !bad;
        if (changed) rounds = iteration + 2;
        if (!ANYONE(changed)) break;
    }
    EACH_STATE {
        policy[k * S + s] = states[own].lowest;
        values[k * S + s] = in.V[s];
        difference[own] = fabs(states[own].best - in.V[s]);
    }
    double worst = greatest(difference, in);
    EACH_STATE if (s == 0) {
        iterations[k] = rounds;
        residual[k] = worst;
        if (bad) faults[0] = 1;  // whoever writes it, writes the same
    }
}

FUNCTION void value_one(const Batch &batch, whole k, Shared in, const whole *policy, double *values, whole *faults) {
    State states[OWN];
    double discount = batch.discount[batch.discount_of[k]];
    bool bad = read(batch, k, in, states, discount);
    EACH_STATE {
        whole action = policy[k * S + s];
        bool known = action >= 0 && action < A;
        states[own].action = known ? (int)action : 0;
        if (bad || !known) faults[0] = 1;
    }
    evaluate(states, in, discount);
    EACH_STATE values[k * S + s] = in.V[s];
}

#define OPERANDS                                                                                                    \
    const double *rows, const whole *rows_of, const double *weight, const whole *weight_of, const double *target,   \
        const whole *target_of, const double *reward, const whole *reward_of, const double *discount,               \
        const whole *discount_of, const bool *allowed, const whole *allowed_of
#define BATCH                                                                                                       \
    {rows, rows_of, weight, weight_of, target, target_of, reward, reward_of, discount, discount_of, allowed, allowed_of}

// Plan for `count` MDPs. `faults` becomes 1 if any is not as it should be; the host then looks for the words.
KERNEL plan(whole count, OPERANDS, whole max_iterations, whole *policy, double *values, whole *iterations,
            double *residual, whole *faults) {
    Batch batch = BATCH;
    EACH_MDP plan_one(batch, k, in, max_iterations, policy, values, iterations, residual, faults);
}

// Find the values of `count` policies, (count, S).
KERNEL value(whole count, OPERANDS, const whole *policy, double *values, whole *faults) {
    Batch batch = BATCH;
    EACH_MDP value_one(batch, k, in, policy, values, faults);
}
