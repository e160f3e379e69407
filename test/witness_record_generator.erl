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
program() -> ?SIZED(Size, steps(Size)).

steps(Size) -> ?LET(N, choose(2, 12), vector(N, step(Size))).

step(Size) ->
    ?LAZY(frequency(
        [{3, {spawn, steps(Size div 3), oneof([[], [], [link]])}} || Size > 3] ++
        [{8, {send, index(), tag()}}, {5, {sends, index(), ?LET(N, choose(2, 5), vector(N, tag()))}}, {3, {send_name, name(), tag()}},
         {6, {take, any, oneof([0, 1, 3])}}, {4, {take, [tag()], oneof([0, 1, 3])}}, {2, {take, [tag(), tag()], 0}},
         {1, {timer, oneof([0, 1, 2]), tag()}}, {2, {register, name()}}, {2, {monitor, index()}}, {1, {link, index()}},
         {1, {kill, index(), oneof([kill, shutdown, reason])}}, {3, {count, tag()}}, {3, {busy, choose(1, 20000)}},
         {1, {trap, boolean()}}, {1, {exit, oneof([normal, reason, {a, term}])}}, {1, hibernate}])).

index() -> choose(0, 6).

tag() -> oneof([a, b, c]).

name() -> oneof([recorded_one, recorded_two]).
