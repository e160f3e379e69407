-module(witness_inline_calls_SUITE).
-moduledoc """
A program that is monitored inline does what it does unwoven: every call that is woven, in every way to call it, with arguments that
succeed and that fail. The program is generated from the table of these calls, as the one of `m:witness_calls_SUITE`. And the
monitors see of it what those of outline monitoring see, but for what `docs/inline.md` lists.
""".
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([every_row_has_arguments/1, monitored_as_unwoven/1]).
-export([rows/0, compared/0]).

-define(A, witness_called_arguments).
-define(WRITTEN, witness_called_written).
-define(CALLS, witness_recorded_calls).
-define(WOVEN, [?WRITTEN, ?CALLS, ?A, witness_recorded_arguments]).
-define(NAME, witness_called_name).
-define(WAIT_MS, 300_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [every_row_has_arguments, monitored_as_unwoven].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = filelib:ensure_path(Out),
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["-pa" | code:get_path()]}),
    true = unlink(Peer),
    ok = peer:call(Peer, logger, set_primary_config, [level, none]),
    _ = [ok = peer:call(Peer, witness_cli_setup, load_elixir, ['Elixir.Witness', []], ?WAIT_MS)
         || os:find_executable("elixir") =/= false],
    ok = peer:call(Peer, witness_calls_program, write, [?WRITTEN, peer:call(Peer, ?MODULE, rows, []), Out], ?WAIT_MS),
    true = peer:call(Peer, code, add_patha, [Out]),
    %% A process that loads code gets messages from the code server.
    ok = peer:call(Peer, code, ensure_modules_loaded, [[witness_called_server, inline_monitor() | ?WOVEN]], ?WAIT_MS),
    [{peer, Peer} | Config].

end_per_suite(Config) -> peer:stop(proplists:get_value(peer, Config)).

inline_monitor() -> witness_inline_monitor.

-doc "The table's rows that this OTP, and the Elixir that is there, have.".
rows() -> [MFA || MFA <- witness_weave_calls:rows(), witness_calls_program:is_there(MFA)].

modules(Rows) -> lists:usort([M || {M, _, _} <- Rows]).

%% --- cases -----------------------------------------------------------------------

every_row_has_arguments(_) ->
    Rows = rows(),
    Given = [{M, F, arity(Entry)} || M <- modules(Rows), Entry <- ?A:entries(M), F <- [element(2, Entry)]],
    ?assertEqual([], Rows -- Given),
    ?assertEqual([], lists:usort([MFA || MFA <- Given, witness_calls_program:is_there(MFA)]) -- Rows).

arity({_, _, Args}) -> length(Args);
arity({_, _, Arity, _}) -> Arity.

monitored_as_unwoven(Config) -> ok = peer:call(proplists:get_value(peer, Config), ?MODULE, compared, [], 2 * ?WAIT_MS).

-doc false.
compared() ->
    Modules = modules(rows()),
    Unwoven = ?CALLS:outcomes(?WRITTEN, ?A, Modules),
    {Monitored, Inline} = run(#{instrument => inline, weave => ?WOVEN}, Modules),
    {Traced, Outline} = run(#{source => source()}, Modules),
    %% What is said to succeed does.
    ?assertEqual([], [Odd || {_, Outcome} = Odd <- Unwoven, element(1, Outcome) =/= outcome]),
    Fails = modules_of(Unwoven) -- [MFA || {{MFA, _, direct}, {outcome, {value, _}, _}} <- Unwoven],
    ?assertEqual([], Fails),
    ?assertEqual([], different(Unwoven, Traced)),
    ?assertEqual([], different(Unwoven, Monitored)),
    ?assert(length(Inline) >= length(Unwoven)),
    ?assertEqual([], unlike(events(Outline, Unwoven), events(Inline, Unwoven))),
    ok.

modules_of(Outcomes) -> lists:usort([MFA || {{MFA, _, _}, _} <- Outcomes]).

different(Some, Others) -> [{Key, One, Other} || {{Key, One}, {Key, Other}} <- lists:zip(Some, Others), One =/= Other].

%% --- events ----------------------------------------------------------------------

%% For each signature what its processes did, and what they got, whatever the order; or why it is not known. Not what
%% `docs/inline.md' lists as seen outline only.
events(Verdicts, Unwoven) ->
    Unknown = unknown(Unwoven),
    maps:map(fun(_, All) -> lists:sort(All) end,
             maps:groups_from_list(fun({Signature, _}) -> Signature end, fun({_, Seen}) -> Seen end,
                                   [{?CALLS:plain(Signature), of_process(key(Signature), V)}
                                    || #{signature := Signature} = V <- Verdicts, not is_unknown(key(Signature), Unknown)])).

key({?CALLS, one, [_, _, Key, _]}) -> {one, Key};
key({?CALLS, Function, [Key | _]}) -> {Function, Key};
key({?A, _, _}) -> none.

%% A start that fails is no fork. An answer that is not waited for may come, or not.
unknown(Unwoven) ->
    #{Call => [] || {{MFA, N, direct}, {outcome, Came, Seen}} <- Unwoven, Call <- [{MFA, N}],
                    is_start(MFA) andalso not is_started(Came) orelse maps:get(messages, Seen) =:= late}.

is_start({M, F, A}) -> witness_weave_calls:class(M, F, A) =:= start.

is_started({value, {'$atom', '$pid'}}) -> true;
is_started({value, {'$atom', {'$pid', '$reference'}}}) -> true;
is_started({value, {{'$atom', '$pid'}, '$reference'}}) -> true;
is_started({value, '$map'}) -> true;
is_started(_) -> false.

is_unknown({one, {_, _, Way}}, _) when Way =:= proc_lib_start; Way =:= proc_lib_start_link; Way =:= proc_lib_start_monitor;
                                       Way =:= first_started -> true;
is_unknown({_, {MFA, N, _}}, Unknown) -> is_map_key({MFA, N}, Unknown);
is_unknown(none, _) -> false.

of_process(Key, #{verdict := yes, info := Events}) ->
    Same = [Event || Event <- Events, not is_outline_only(Event), not is_by_chance(Key, Event)],
    {[done(Event) || Event <- Same, lists:member(element(1, Event), [fork, send])],
     lists:sort([?CALLS:plain(Message) || {recv, _, _, Message, _} <- Same])};
of_process(_, #{verdict := Verdict, reason := Reason}) -> {Verdict, Reason}.

%% A process that is monitored when it may have ended.
is_by_chance({one, {_, _, Way}}, {recv, _, _, {'DOWN', _, _, _, _}, _}) ->
    lists:member(Way, [spawn_1, spawn_3, spawn_4, spawn_request_3, proc_lib_spawn_3, proc_lib_spawn_4]);
%% What comes to a process that ends without waiting for it.
is_by_chance({Begun, {{_, Function, _}, _, _}}, {recv, _, _, Message, _}) when Begun =/= one ->
    lists:member(Function, [send_request, spawn_monitor]) andalso is_answer(Message);
is_by_chance(_, _) -> false.

is_answer({'DOWN', _, process, _, _}) -> true;
is_answer({[alias | _], _}) -> true;
is_answer(_) -> false.

done({fork, _, _, {M, F, Args}, _}) -> {fork, {M, F, length(Args)}};
done({send, _, To, Message, _}) -> {send, ?CALLS:plain(To), ?CALLS:plain(Message)}.

is_outline_only({recv, _, _, {ack, P, _}, _}) when is_pid(P) -> true;
is_outline_only({recv, _, _, {nack, P, _}, _}) when is_pid(P) -> true;
%% Of a `multi_call'.
is_outline_only({recv, _, _, {Alias, Ref, process, {_, _}, _}, _}) when is_reference(Alias), is_reference(Ref) -> true;
%% What is never taken.
is_outline_only({recv, _, _, wake, _}) -> true;
is_outline_only({recv, _, _, {'DOWN', _, process, _, Reason}, _}) -> Reason =:= normal;
is_outline_only({recv, _, _, {timeout, Timer, Alias}, _}) -> is_reference(Timer) andalso is_reference(Alias);
%% `global' asks whether a process is alive, and a port is opened.
is_outline_only({recv, _, _, {Ref, What}, _}) when What =:= true; is_port(What) -> is_reference(Ref);
%% From a node that is none, to another one.
is_outline_only({send, _, {_, 'a@b'}, _, _}) -> true;
is_outline_only({send, _, _, {_, _, process, {_, 'a@b'}, noconnection}, _}) -> true;
is_outline_only({recv, _, _, {spawn_reply, _, error, noconnection}, _}) -> true;
is_outline_only({send, _, Name, _, _}) when is_atom(Name) -> Name =/= ?NAME;
%% What a task is told.
is_outline_only({send, _, _, {Owner, _, _, _, {_, _, _}}, _}) when is_pid(Owner) -> true;
is_outline_only({fork, _, _, {erts_internal, crasher, _}, _}) -> true;
is_outline_only({fork, _, _, {?A, nowhere, _}, _}) -> true;
is_outline_only(_) -> false.

unlike(Outline, Inline) ->
    [{Signature, Traced, Woven} || Signature := Traced <- Outline, Woven <- [maps:get(Signature, Inline, none)], Traced =/= Woven,
                                   not is_gap(key(Signature), Woven)]
        ++ [{Signature, none, Woven} || Signature := Woven <- maps:without(maps:keys(Outline), Inline)].

%% Requests without an answer before the process ends, and calls that fail when they have sent.
is_gap({_, {{erlang, spawn_request, _}, _, _}}, [{inconclusive, {gap, spawn_request}}]) -> true;
is_gap({_, {{_, multi_call, 3}, _, _}}, [{inconclusive, {gap, multi_call}}]) -> true;
is_gap(_, _) -> false.

source() ->
    case witness_trace_native:available() of
        ok -> native;
        {error, _} -> evm
    end.

%% --- a run -----------------------------------------------------------------------

%% What came of each call, and the verdict of each process that is monitored: its events.
run(Options, Modules) ->
    Before = processes(),
    Signatures = [{?CALLS, one, 4}, {?CALLS, first, 4}, {?CALLS, sleeping, 4}, {?A, ends, 1}, {?A, error_0, 0}],
    {ok, Run} = witness:start(Options#{system => {?CALLS, told, [self(), ?WRITTEN, ?A, Modules]}, log => false,
                                       max_verdicts => 1_000_000,
                                       monitors => [{Signature, {inline_monitor(), events}} || Signature <- Signatures]}),
    Outcomes = receive {outcomes, All} -> All end,
    %% What has no callbacks that end it with its owner.
    _ = [exit(P, kill) || P <- processes() -- Before, {M, Name, _} <- [proc_lib:translate_initial_call(P)],
                          M =:= gen_event orelse Name =:= 'Elixir.Supervisor.Default'],
    Ended = witness:await(Run, ?WAIT_MS),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {ok, _} = Ended,
    {Outcomes, [maps:with([signature, verdict, reason, info], V) || V <- Verdicts]}.
