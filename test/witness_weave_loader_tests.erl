-module(witness_weave_loader_tests).
-moduledoc "Woven modules are loaded for an owner and restored, whichever process dies. No process is ever killed for that.".
-include_lib("eunit/include/eunit.hrl").

-export([sent/2, received/1, entry/3]).

-define(A, witness_weave_kept_a).
-define(B, witness_weave_kept_b).

keeper_test_() ->
    {foreach, fun start/0, fun stop/1,
     [{Name, {timeout, 60, Test}} || {Name, Test} <- [
         {"modules are restored when their owner says so", fun told/0},
         {"modules are restored when their owner is killed", fun killed/0},
         {"modules are restored when Witness is stopped", fun stopped/0},
         {"modules are restored although the keeper was killed", fun keeper_killed/0},
         {"a process in original code lives on, and the module is restored after it", fun original_in_use/0},
         {"that needs nobody to ask", fun restored_later/0},
         {"a process goes from original code into woven code and back", fun there_and_back/0},
         {"what a process in woven code would die of is refused", fun woven_in_use/0},
         {"funs that were made in woven code can be called when it is not there any more", fun stored_funs/0},
         {"what waits to be restored can be taken over", fun taken_over/0},
         {"all modules are loaded, or none", fun none/0},
         {"a module has one owner", fun one_owner/0},
         {"of owners at the same time one gets all", fun race/0},
         {"what others have loaded since is left alone", fun loaded_by_others/0},
         {"what is not loaded is not woven", fun differs/0},
         {"an owner that has ended gets nothing", fun ended_owner/0}]]}.

start() ->
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(witness),
    [{module, Module} = load(Module, original(Module, 1)) || Module <- [?A, ?B]],
    Level.

stop(Level) ->
    _ = application:stop(witness),
    [begin code:purge(Module), code:delete(Module), code:purge(Module) end || Module <- [?A, ?B]],
    logger:set_primary_config(level, Level).

not_started_test() ->
    _ = application:stop(witness),
    ?assertEqual({error, not_started}, witness_weave:load([], self())),
    ?assertEqual({error, not_started}, witness_weave:restore(self())),
    ?assertMatch([_ | _], lists:flatten(witness_weave:format_error(not_started))).

told() ->
    Before = [md5(?A), md5(?B)],
    ok = witness_weave:load(woven([?A, ?B]), self()),
    ?assertEqual([{ok, ?MODULE}, {ok, ?MODULE}], [witness_weave:woven(M) || M <- [?A, ?B]]),
    ?assertEqual(#{?A => {self(), loaded}, ?B => {self(), loaded}}, witness_weave_loader:status()),
    ?assertEqual(ok, witness_weave:restore(self())),
    ?assertEqual({Before, #{}}, {[md5(?A), md5(?B)], witness_weave_loader:status()}),
    ok = witness_weave:load(woven([?A]), self()),
    ?assertEqual({ok, ?MODULE}, witness_weave:woven(?A)),
    ok = witness_weave:restore(self()).

killed() ->
    Before = md5(?A),
    Owner = owner(woven([?A])),
    ?assertEqual({ok, ?MODULE}, witness_weave:woven(?A)),
    kill(Owner),
    ?assertEqual(#{}, witness_weave_loader:status()),
    ?assertEqual(Before, md5(?A)).

stopped() ->
    Before = md5(?A),
    ok = witness_weave:load(woven([?A]), self()),
    ok = application:stop(witness),
    ?assertEqual(Before, md5(?A)).

keeper_killed() ->
    Before = md5(?A),
    Owner = owner(woven([?A])),
    {Keeper, Ref} = {whereis(witness_weave_loader), monitor(process, witness_weave_loader)},
    exit(Keeper, kill),
    receive {'DOWN', Ref, process, _, _} -> ok end,
    witness_await:until(fun() -> is_pid(whereis(witness_weave_loader)) end),
    ?assertEqual(#{?A => {Owner, loaded}}, witness_weave_loader:status()),
    exit(whereis(witness_weave_loader), kill),
    kill(Owner),
    witness_await:until(fun() -> witness_weave_loader:status() =:= #{} end),
    ?assertEqual(Before, md5(?A)).

original_in_use() ->
    Before = md5(?A),
    P = spawn_link(?A, loop, [1]),
    ?assertEqual(1, ask(P, version)),
    ok = witness_weave:load(woven([?A, ?B]), self()),
    ?assertEqual({in_use, [?A]}, witness_weave:restore(self())),
    ?assertEqual({{ok, ?MODULE}, no}, {witness_weave:woven(?A), witness_weave:woven(?B)}),
    ?assertEqual(#{?A => {self(), waiting}}, witness_weave_loader:status()),
    ?assertEqual(1, ask(P, version)),
    ended(P),
    ?assertEqual(ok, witness_weave:restore(self())),
    ?assertEqual({Before, #{}}, {md5(?A), witness_weave_loader:status()}).

restored_later() ->
    P = spawn_link(?A, loop, [1]),
    Owner = owner(woven([?A])),
    kill(Owner),
    ?assertEqual(#{?A => {Owner, waiting}}, witness_weave_loader:status()),
    ended(P),
    witness_await:until(fun() -> witness_weave:woven(?A) =:= no end).

there_and_back() ->
    P = spawn_link(?A, loop, [1]),
    ok = witness_weave:load(woven([?A]), self()),
    ?assertEqual(original, ask(P, code)),
    ?assertEqual(woven, ask(P, qualified)),
    ?assertEqual(ok, witness_weave:restore(self())),
    ?assertEqual(woven, ask(P, code)),
    ?assertEqual(original, ask(P, qualified)),
    ok = witness_weave:load(woven([?A]), self()),
    ?assertEqual(woven, ask(P, qualified)),
    ok = witness_weave:restore(self()),
    ?assertEqual(original, ask(P, qualified)),
    ended(P).

woven_in_use() ->
    ok = witness_weave:load(woven([?A]), self()),
    P = spawn_link(?A, loop, [1]),
    ok = witness_weave:restore(self()),
    ?assertEqual({error, {in_use, ?A}}, witness_weave:load(woven([?B, ?A]), self())),
    ?assertEqual(#{}, witness_weave_loader:status()),
    ?assertEqual(woven, ask(P, code)),
    ended(P),
    ?assertEqual(ok, witness_weave:load(woven([?B, ?A]), self())),
    ok = witness_weave:restore(self()).

%% No heap holds the fun, so the VM does not know that it is in use.
stored_funs() ->
    Table = ets:new(funs, [public]),
    Made = fun() -> {Pid, Ref} = spawn_monitor(fun() -> ets:insert(Table, {made, ?A:version_fun()}) end),
                    receive {'DOWN', Ref, process, Pid, normal} -> ok end
           end,
    Call = fun() -> [{made, Fun}] = ets:lookup(Table, made), Fun() end,
    Made(),
    ok = witness_weave:load(woven([?A]), self()),
    ?assertEqual(1, Call()),
    Made(),
    ?assertEqual(ok, witness_weave:restore(self())),
    ?assertEqual(1, Call()),
    ok = witness_weave:load(woven([?A]), self()),
    ?assertEqual(1, Call()),
    ok = witness_weave:restore(self()),
    ?assertEqual(1, Call()).

taken_over() ->
    Before = md5(?A),
    P = spawn_link(?A, loop, [1]),
    Owner = owner(woven([?A])),
    kill(Owner),
    {ok, Other} = witness_weave:prepare(object(?A), #{runtime => ?MODULE, entries => all}),
    ?assertEqual({error, {in_use, ?A}}, witness_weave:load([Other], self())),
    %% If the module is given by its name, its original code is woven again.
    {ok, Same} = witness_weave:prepare(?A, #{runtime => ?MODULE}),
    ?assertEqual(ok, witness_weave:load([Same], self())),
    ?assertEqual(#{?A => {self(), loaded}}, witness_weave_loader:status()),
    ?assertEqual({in_use, [?A]}, witness_weave:restore(self())),
    ended(P),
    ?assertEqual(ok, witness_weave:restore(self())),
    ?assertEqual(Before, md5(?A)).

none() ->
    P = spawn_link(?B, loop, [1]),
    {module, ?B} = load(?B, original(?B, 2)),
    {ok, Woven} = witness_weave:prepare({?B, "b", original(?B, 2)}, #{runtime => ?MODULE}),
    ?assertEqual({error, {in_use, ?B}}, witness_weave:load(woven([?A]) ++ [Woven], self())),
    ?assertEqual({no, no, #{}}, {witness_weave:woven(?A), witness_weave:woven(?B), witness_weave_loader:status()}),
    ?assertEqual(1, ask(P, version)),
    Broken = (hd(woven([?A])))#{woven := ~"no object code"},
    ?assertMatch({error, _}, witness_weave:load([Broken], self())),
    ?assertEqual(#{}, witness_weave_loader:status()),
    ended(P).

one_owner() ->
    Owner = owner(woven([?A])),
    ?assertEqual({error, {owned, ?A, Owner}}, witness_weave:load(woven([?B, ?A]), self())),
    ?assertEqual(no, witness_weave:woven(?B)),
    ?assertEqual(ok, witness_weave:restore(self())),
    ?assertEqual({ok, ?MODULE}, witness_weave:woven(?A)),
    kill(Owner),
    ?assertEqual(ok, witness_weave:load(woven([?B, ?A]), self())).

race() ->
    Sets = [woven([?A, ?B]), woven([?B, ?A])],
    Parent = self(),
    Owners = [spawn(fun() ->
        Parent ! {self(), witness_weave:load(lists:nth(I rem 2 + 1, Sets), self())},
        receive stop -> ok end
    end)
              || I <- lists:seq(1, 20)],
    Results = [{P, receive {P, Result} -> Result end} || P <- Owners],
    [Winner] = [P || {P, ok} <- Results],
    ?assertEqual(19, length([owned || {_, {error, {owned, _, P}}} <- Results, P =:= Winner])),
    ?assertEqual(#{?A => {Winner, loaded}, ?B => {Winner, loaded}}, witness_weave_loader:status()),
    [kill(P) || P <- Owners],
    ?assertEqual({#{}, no, no}, {witness_weave_loader:status(), witness_weave:woven(?A), witness_weave:woven(?B)}).

loaded_by_others() ->
    ok = witness_weave:load(woven([?A]), self()),
    {module, ?A} = load(?A, original(?A, 2)),
    ?assertEqual(ok, witness_weave:restore(self())),
    ?assertEqual(2, ?A:version()),
    ?assertEqual(#{}, witness_weave_loader:status()).

differs() ->
    Woven = woven([?A]),
    {module, ?A} = load(?A, original(?A, 2)),
    ?assertEqual({error, {differs, ?A}}, witness_weave:load(Woven, self())),
    ?assertEqual(2, ?A:version()).

ended_owner() ->
    Owner = spawn(fun() -> ok end),
    kill(Owner),
    ?assertEqual({error, {ended, Owner}}, witness_weave:load(woven([?A]), Owner)),
    ?assertEqual(no, witness_weave:woven(?A)).

%% --- modules ---------------------------------------------------------------------

woven(Modules) ->
    [Woven || Module <- Modules, {ok, Woven} <- [witness_weave:prepare(object(Module), #{runtime => ?MODULE})]].

object(Module) -> {Module, atom_to_list(Module), original(Module, 1)}.

%% A loop that says which code it runs, and goes on in the newest if it is told to.
original(Module, Version) ->
    witness_weave_source:code(io_lib:format("""
        -module(~s).
        -export([loop/1, qualified/2, version/0, version_fun/0]).
        version() -> ~b.
        version_fun() -> fun() -> version() end.
        loop(N) ->
            case next() of
                {From, version} -> From ! {self(), ~b}, loop(N);
                {From, code} -> From ! {self(), code()}, loop(N);
                {From, qualified} -> ~s:qualified(From, N);
                stop -> ok
            end.
        qualified(From, N) -> From ! {self(), code()}, loop(N).
        next() -> receive Msg -> Msg end.
        code() ->
            erase(told),
            self() ! probe,
            receive probe -> ok end,
            case erase(told) of undefined -> original; _ -> woven end.
        """, [Module, Version, Version, Module]), []).

load(Module, Code) -> code:load_binary(Module, atom_to_list(Module), Code).

md5(Module) -> Module:module_info(md5).

%% --- the run-time module ---------------------------------------------------------

sent(_, _) -> ok.

received(_) -> put(told, yes).

entry(_, _, _) -> go.

%% --- processes -------------------------------------------------------------------

owner(Woven) ->
    Parent = self(),
    Owner = spawn(fun() -> Parent ! {self(), witness_weave:load(Woven, self())}, receive stop -> ok end end),
    receive {Owner, ok} -> Owner end.

kill(P) ->
    exit(P, kill),
    _ = witness_await:down(P),
    ok.

ask(P, Question) ->
    P ! {self(), Question},
    receive {P, Answer} -> Answer end.

ended(P) ->
    Ref = monitor(process, P),
    P ! stop,
    receive {'DOWN', Ref, process, P, normal} -> ok end.
