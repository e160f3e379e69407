%% What a monitor sees, and so its verdict, is the same whether events are left out at the source or not.
-module(witness_filter_props_tests).
-behaviour(witness_monitor).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([init/3, handle_event/2, handle_end/2, alphabet/1]).
-export([system/1, child/2]).

%% The monitor: what it has seen is its verdict. Its argument is its alphabet.
init(_, _, _) -> {ok, []}.
handle_event(E, Seen) -> {ok, [E | Seen]}.
handle_end(complete, Seen) -> {yes, lists:reverse(Seen)}.
alphabet(Alphabet) -> Alphabet.

%% The system: a process that sends itself messages and spawns children that do the same.
system(Script) -> child(root, Script).

child(_, Script) -> lists:foreach(fun step/1, Script).

step({spawn, Script}) ->
    {_, Ref} = spawn_monitor(?MODULE, child, [leaf, Script]),
    receive {'DOWN', Ref, _, _, normal} -> ok end;
step({self, Message}) -> self() ! Message, receive Message -> ok end;
step({away, Message}) -> spawn(fun() -> ok end) ! Message.

what_is_left_out_changes_no_verdict_test_() ->
    {timeout, 120, fun() ->
        ?assertEqual(true, proper:quickcheck(filtered_is_unfiltered(), [{numtests, 150}, {to_file, user}]))
    end}.

%% With several alphabets in one run the source leaves out less than each alone would let it.
filtered_is_unfiltered() ->
    ?FORALL({Script, Alphabets, Source}, {script(2), non_empty(list(alphabet())), oneof(sources())},
            begin
                Whole = seen(Script, [all], Source),
                Each = seen(Script, Alphabets, Source),
                ?WHENFAIL(io:format("~p~n~p~n", [Whole, Each]),
                          lists:sort(Each) =:= lists:sort([part(Seen, A) || Seen <- Whole, A <- Alphabets]))
            end).

sources() -> [evm | [native || witness_trace_native:available() =:= ok]].

%% Of each process that is monitored, without what is another one in each run: identifiers and references.
seen(Script, Alphabets, Source) ->
    {ok, Run} = witness:start(#{source => Source, system => {?MODULE, system, [Script]}, log => false, drain => infinity,
                                monitors => [{{?MODULE, child, 2}, {?MODULE, A}} || A <- Alphabets]
                                         ++ [{{?MODULE, system, 1}, {?MODULE, A}} || A <- Alphabets]}),
    {ok, #{gaps := 0}} = witness:await(Run, infinity),
    Seen = [[plain(E) || E <- Info] || #{verdict := yes, info := Info} <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    Seen.

plain({Kind, _, _, Message, _}) when Kind =:= send; Kind =:= recv ->
    {Kind, case Message of {'DOWN', _, _, _, Reason} -> {'DOWN', Reason}; _ -> Message end};
plain({Kind, _, _, {M, F, _}, _}) -> {Kind, {M, F}};
plain({exit, _, Reason, _}) -> {exit, Reason}.

%% What the alphabet says of the whole, by a reading of its own.
part(Seen, all) -> Seen;
part(Seen, Alphabet) -> [E || E <- Seen, lists:any(fun(A) -> is_in(E, A) end, Alphabet)].

is_in({Kind, _}, Kind) -> true;
is_in({Kind, Message}, {Kind, Clauses}) ->
    lists:any(fun({['_', {Tag, '_'}], [], []}) -> is_tuple(Message) andalso tuple_size(Message) =:= 2
                                                      andalso element(1, Message) =:= Tag;
                 ({['_', {Tag, '$1'}], [{'>', '$1', N}], []}) -> is_tuple(Message) andalso tuple_size(Message) =:= 2
                                                      andalso element(1, Message) =:= Tag andalso element(2, Message) > N
              end, Clauses);
is_in(_, _) -> false.

script(0) -> list(oneof([{self, message()}, {away, message()}]));
script(Depth) -> list(frequency([{3, {self, message()}}, {2, {away, message()}}, {1, {spawn, ?LAZY(script(Depth - 1))}}])).

message() -> oneof([atom, {oneof([a, b]), range(0, 3)}, {a, 1, 2}, [1]]).

alphabet() ->
    oneof([all, list(oneof([init, exit, fork, send, recv, {oneof([send, recv]), non_empty(list(clause()))}]))]).

clause() ->
    oneof([{['_', {oneof([a, b]), '_'}], [], []}, {['_', {oneof([a, b]), '$1'}], [{'>', '$1', range(0, 3)}], []}]).
