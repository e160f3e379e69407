-module(witness_record_generator).
-moduledoc "Generates programs for `witness_recorded_random`: trees of processes that talk to, wait for and kill each other.".
-include_lib("proper/include/proper.hrl").

-export([program/0, programs/2]).

-doc "Some programs, always the same ones for a seed.".
-spec programs(pos_integer(), Seed :: integer()) -> [term()].
programs(Number, Seed) ->
    {ok, Programs} = proper_gen:pick(vector(Number, program()), 40, {Seed, Number, 1}),
    Programs.

-doc "A program.".
-spec program() -> proper_types:type().
program() -> ?SIZED(Size, ?LET({Before, Gathered, After}, {steps(Size), gather(), steps(Size)}, Before ++ Gathered ++ After)).

steps(Size) -> ?LET(N, choose(2, 12), ?LET(Steps, vector(N, oneof_steps(Size)), lists:append(Steps))).

oneof_steps(Size) -> frequency([{40, [step(Size)]}] ++ [{3, ?LAZY(gather())} || Size > 3]).

%% Some children send much to their parent. It may wait until they have said that they are done, and then chooses among what is
%% there: mostly several messages of one sender match, and of several senders. So what is taken depends on the order of each.
gather() ->
    ?LET({Senders, Picks}, {?LET(N, choose(1, 3), vector(N, sender())), ?LET(N, choose(4, 10), vector(N, pick()))},
         ?LET(Waits, choose(0, length(Senders)),
              [{spawn, Steps, []} || Steps <- Senders] ++ lists:duplicate(Waits, {take, [done], 50}) ++ Picks)).

%% What waits takes no time when it is replayed, and what computes does: then others are the first.
sender() ->
    ?LET(Steps, ?LET(N, choose(3, 8),
                     vector(N, frequency([{6, {send, 1, tag()}}, {1, {busy, choose(1, 200000)}}, {1, {take, [done], 2}}]))),
         Steps ++ [{send, 1, done}]).

pick() ->
    frequency([{4, {pick, tags(), any, 0}}, {2, {pick, tags(), {2, choose(0, 1)}, 0}}, {1, {pick, tags(), {3, choose(0, 2)}, 1}},
               {3, {pick_of, choose(0, 2), tags(), oneof([0, 0, 1])}}, {1, {take, any, 0}}, {1, {send, index(), tag()}}]).

tags() -> oneof([[a], [b], [a, b], [b, c], [a, c], [a, b, c]]).

step(Size) ->
    ?LAZY(frequency(
        [{3, {spawn, steps(Size div 3), oneof([[], [], [link]])}} || Size > 3] ++
        [{8, {send, index(), tag()}}, {5, {sends, index(), ?LET(N, choose(2, 5), vector(N, tag()))}},
         {3, {send_name, name(), tag()}},
         {6, {take, any, oneof([0, 1, 3])}}, {4, {take, [tag()], oneof([0, 1, 3])}}, {2, {take, [tag(), tag()], 0}},
         {1, {timer, oneof([0, 1, 2]), tag()}}, {2, {register, name()}}, {2, {monitor, index()}}, {1, {link, index()}},
         {1, {kill, index(), oneof([kill, shutdown, reason])}}, {3, {count, tag()}}, {3, {busy, choose(1, 20000)}},
         {1, {trap, boolean()}}, {1, {exit, oneof([normal, reason, {a, term}])}}, {1, hibernate}])).

index() -> choose(0, 6).

tag() -> oneof([a, b, c]).

name() -> oneof([recorded_one, recorded_two]).
