-module(witness_event_alias_tests).
-include_lib("eunit/include/eunit.hrl").

-export([exact/1]).

-import(witness_event_alias, [owner/1, foreign_owner/1]).

alias_belongs_to_the_process_that_made_it_test() ->
    {Other, AnAlias} = with_alias(),
    ?assertEqual({ok, Other}, owner(AnAlias)),
    ?assertEqual({ok, Other}, foreign_owner(AnAlias)),
    ?assertEqual({ok, self()}, owner(alias([reply]))),
    ?assertEqual({ok, self()}, owner(monitor(process, Other, [{alias, explicit_unalias}]))).

reference_that_is_no_alias_has_no_owner_test() ->
    ?assertEqual(none, owner(make_ref())),
    ?assertEqual(none, owner(monitor(process, self()))),
    ?assertEqual(none, owner(ets:whereis(code))),
    ?assertEqual(none, owner(atomics:new(1, []))),
    ?assertEqual(none, foreign_owner(make_ref())).

%% The numbers of processes pass an eighth of the limit, where their bits are permuted.
owners_are_exact_whatever_the_numbers_of_processes_test_() ->
    {timeout, 60, fun() -> many(300_000) end}.

many(0) -> ok;
many(N) ->
    {_, Ref} = spawn_monitor(fun() ->
        Alias = alias(),
        {ok, Self} = owner(Alias),
        Self = self(),
        case foreign_owner(Alias) of none -> ok; {ok, Self} -> ok end
    end),
    receive {'DOWN', Ref, _, _, Reason} -> ?assertEqual(normal, Reason) end,
    many(N - 1).

owners_are_exact_whatever_the_limit_of_processes_test_() ->
    [{Limit, {timeout, 60, fun() -> with_limit(Limit, Count) end}}
     || {Limit, Count} <- [{"1024", 3_000}, {"5000", 10_000}, {"4000000", 3_000}, {"16777216", 3_000}]].

with_limit(Limit, Count) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["+P", Limit]}),
    Modules = [{M, code:get_object_code(M)} || M <- [witness_event_alias, ?MODULE]],
    [{module, M} = peer:call(Peer, code, load_binary, [M, File, Object]) || {M, {M, Object, File}} <- Modules],
    ok = peer:call(Peer, ?MODULE, exact, [Count], 50_000),
    peer:stop(Peer).

%% Called in another VM.
exact(0) -> ok;
exact(N) ->
    {_, Ref} = spawn_monitor(fun() -> true = {ok, self()} =:= owner(alias()) end),
    receive {'DOWN', Ref, _, _, Reason} -> normal = Reason, exact(N - 1) end.

%% The text is that of a VM: `<0.91.0>' made the first alias, and the number of the second one's process depends on +P.
alias_of_a_log_is_of_the_process_of_its_log_test() ->
    ?assertEqual({ok, list_to_pid("<0.86.0>")}, foreign_owner(list_to_ref("#Ref<0.0.11011.691054568.2460024833.85647>"))),
    ?assertEqual(none, foreign_owner(list_to_ref("#Ref<0.0.11027.691054568.2460024833.85647>"))),
    ?assertEqual({ok, list_to_pid("<0.86.1>")}, foreign_owner(list_to_ref("#Ref<0.1.11011.691054568.2460024833.85647>"))).

alias_of_another_node_is_of_a_process_of_that_node_test() ->
    Atoms = witness_log_atoms:new(10),
    Alias = witness_log_atoms:reference(12, [0, 11011, 691054568, 2460024833, 85647], Atoms),
    ?assertEqual({ok, witness_log_atoms:pid(12, 86, 0, Atoms)}, owner(Alias)).

with_alias() ->
    Self = self(),
    Pid = spawn_link(fun() -> Self ! {self(), alias()}, receive stop -> ok end end),
    receive {Pid, Alias} -> {Pid, Alias} end.
