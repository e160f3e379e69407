-module(witness_savina).
-moduledoc """
The 18 benchmarks of the Savina suite (Imam and Sarkar 2014) that the record & replay paper measures, in Erlang:
ordinary programs that know nothing of Witness.

```erlang
1> witness_savina:run(counting, savina).
{ok,#{count => 1000000}}
2> witness_savina:run(thread_ring, #{processes => 100, hops => 1000}).
{ok,#{passed => 1001}}
```

A benchmark is a module with this behaviour. Its work is the same in every run: there are no clocks, and the
only random numbers are those of Savina's own generator (`m:witness_savina_random`). Each verifies its result.
If Savina does not define the result, it verifies what must hold under every schedule. Numbers that do depend on the
schedule (retries) are in the result, too. Each module says which processes there are, how they communicate, and what
is verified.

A process that answers requests (the dictionary, the sorted list, accounts, the rates, the philosophers'
arbiter) is a `gen_server` and is called; everything else is plain processes and `!`. Savina's master or
sink is the process in which the benchmark runs. The series of `logistic_map` and the accounts of `bank_transaction` have
long mailboxes while they make calls, so they keep them off the heap. Otherwise
their garbage collections are most of what is measured. If a parameter is a number of busy waits or of expensive
operations, the module defines what one of them is, and nothing is scaled down silently.

## Parameter sets

- `savina`: the defaults of the suite (its `*Config.java`);
- `somns`: what SOMns ran for the record & replay paper (the `savina-jit` part of its `codespeed.conf`; there,
  the numbers of `fork_join_throughput` and `big_contention` are processes first, messages second);
- `small`: for tests, a few hundred messages;
- `somns_literal`, of `chameneos` alone: the two numbers of SOMns in the order in which its code reads them, 100
  meetings of 100,000 chameneos. `somns` reads them as Savina does.

Sources: the Akka versions and configurations of shamsimam/savina, and `smarr/SOMns`.
""".

-export([run/2, names/0, sets/1, parameters/2, module/1]).
-export([main/2]).
-export_type([name/0, set/0, parameters/0, result/0]).

-doc "The name of a benchmark.".
-type name() :: ping_pong | counting | fork_join_throughput | fork_join_creation | thread_ring | chameneos
              | big_contention | dictionary | sorted_list | bounded_buffer | philosophers | sleeping_barber
              | cigarette_smokers | logistic_map | bank_transaction | radix_sort | trapezoidal | cobwebbed_tree.

-doc "A parameter set; `somns_literal` is there for `chameneos` alone.".
-type set() :: savina | somns | small | somns_literal.

-doc "Every parameter of a benchmark with its value; all are positive.".
-type parameters() :: #{atom() => number()}.

-doc "What was verified, and numbers that depend on the schedule.".
-type result() :: #{atom() => term()}.

-doc "The parameter sets; all have the same keys.".
-callback sets() -> #{savina := parameters(), somns := parameters(), small := parameters(), atom() => parameters()}.

-doc """
Runs in a process of its own, with an empty mailbox. When it returns, everything that it has started has ended.
A result that is wrong ends the process (`witness_savina_processes:verify/3`), and so does the crash of any
other (links).
""".
-callback run(parameters()) -> result().

-doc """
Runs a benchmark to its end, in a process of its own.

## Errors

Raised, since a benchmark that fails must not be measured:

- `{unknown_benchmark, Name}`, `{unknown_parameter_set, Name, Set}`;
- `{bad_parameters, Name, Keys}`: these are missing, unknown or not positive numbers;
- `{failed, Name, Reason}`: `{wrong, What, Expected, Found}` is a result that is wrong, anything else a crash.
""".
-spec run(name(), set() | parameters()) -> {ok, result()}.
run(Name, Set) when is_atom(Set) -> run(Name, parameters(Name, Set));
run(Name, Parameters) ->
    Module = module(Name),
    check(Name, maps:get(small, Module:sets()), Parameters),
    {Pid, Ref} = spawn_monitor(?MODULE, main, [Module, Parameters]),
    receive
        {'DOWN', Ref, process, Pid, {finished, Result}} -> {ok, Result};
        {'DOWN', Ref, process, Pid, Reason} -> error({failed, Name, Reason})
    end.

-doc false.
-spec main(module(), parameters()) -> no_return().
main(Module, Parameters) -> exit({finished, Module:run(Parameters)}).

check(Name, Known, Given) ->
    Bad = [Key || Key := Value <- Given, not is_map_key(Key, Known) orelse not is_number(Value) orelse Value =< 0],
    case lists:usort(Bad ++ (maps:keys(Known) -- maps:keys(Given))) of
        [] -> ok;
        Keys -> error({bad_parameters, Name, Keys})
    end.

-doc "All benchmarks, in the order of the paper's table.".
-spec names() -> [name()].
names() ->
    [ping_pong, counting, fork_join_throughput, fork_join_creation, thread_ring, chameneos, big_contention,
     dictionary, sorted_list, bounded_buffer, philosophers, sleeping_barber, cigarette_smokers,
     logistic_map, bank_transaction, radix_sort, trapezoidal, cobwebbed_tree].

-doc "The parameter sets that a benchmark has.".
-spec sets(name()) -> [set()].
sets(Name) -> maps:keys((module(Name)):sets()).

-doc "The parameters of a set.".
-spec parameters(name(), set()) -> parameters().
parameters(Name, Set) ->
    case (module(Name)):sets() of
        #{Set := Parameters} -> Parameters;
        #{} -> error({unknown_parameter_set, Name, Set})
    end.

-doc "The module of a benchmark.".
-spec module(name()) -> module().
module(ping_pong) -> witness_savina_ping_pong;
module(counting) -> witness_savina_counting;
module(fork_join_throughput) -> witness_savina_fork_join_throughput;
module(fork_join_creation) -> witness_savina_fork_join_creation;
module(thread_ring) -> witness_savina_thread_ring;
module(chameneos) -> witness_savina_chameneos;
module(big_contention) -> witness_savina_big_contention;
module(dictionary) -> witness_savina_dictionary;
module(sorted_list) -> witness_savina_sorted_list;
module(bounded_buffer) -> witness_savina_bounded_buffer;
module(philosophers) -> witness_savina_philosophers;
module(sleeping_barber) -> witness_savina_sleeping_barber;
module(cigarette_smokers) -> witness_savina_cigarette_smokers;
module(logistic_map) -> witness_savina_logistic_map;
module(bank_transaction) -> witness_savina_bank_transaction;
module(radix_sort) -> witness_savina_radix_sort;
module(trapezoidal) -> witness_savina_trapezoidal;
module(cobwebbed_tree) -> witness_savina_cobwebbed_tree;
module(Name) -> error({unknown_benchmark, Name}).
