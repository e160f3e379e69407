-module(witness_inline_registry).
-moduledoc """
Which run observes what begins in a module.

Woven code asks at the birth of each process (`find/1`), also where Witness is not started: a look at a persistent term,
which is not there where no run wants the module. A module belongs to one run at a time, whoever has woven it; what a run
has claimed is given back when its host ends, however it does. A term that outlives both, since this process was killed as
well, names a host that is dead, and is taken back by the next one.
""".
-behaviour(gen_server).

-export([start_link/0, claim/2, release/1, find/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([births/0]).

-doc """
What a process that is born needs to know of the run.

- `host`: whom monitors report to, who answers for them;
- `outside`: what watches calls of modules that are not woven;
- `switch`: its first number is 1 while the run observes, the second one 1 while somebody is to be shown each verdict by itself; the third one is the
  host's time, by which monitors that do not come back are known;
- `notes`: where processes leave what they do not tell the host (`m:witness_inline_notes`);
- `kept`: where they leave what is to be known when they are dead (`m:witness_inline_kept`);
- `events`: where events are counted;
- `stamped`: whether events carry their time;
- `known`: who is not to be observed from here on: `{Pid, old}` was born before the run, `{Pid, seen}` is observed already;
- `scope`: whether a process belongs to what is observed;
- `maps`: which monitors are for it, and `prepared`, these monitors, with `explain`, `max_slices` and the like.
""".
-type births() :: #{host := pid(), outside := witness_inline_outside:session(), switch := atomics:atomics_ref(), events := counters:counters_ref(),
                    stamped := boolean(), known := ets:table(), kept := witness_inline_kept:table(), notes := witness_inline_notes:notes(), scope := fun((pid()) -> boolean()),
                    maps := [witness_outline_map:instrumentation()],
                    prepared := #{{module(), term()} => witness_inline_monitors:prepared()}}.

-define(TERM(Module), {?MODULE, Module}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Has processes that begin in these modules observed, until the host ends. All of them, or none.".
-spec claim([module()], births()) -> ok | {error, {observed, module(), Host :: pid()}}.
claim(Modules, Births) -> gen_server:call(?MODULE, {claim, Modules, Births}, infinity).

-doc "Gives back what a host has claimed.".
-spec release(Host :: pid()) -> ok.
release(Host) -> gen_server:call(?MODULE, {release, Host}, infinity).

-doc "The run that observes processes that begin in this module.".
-spec find(module()) -> births() | none.
find(Module) -> persistent_term:get(?TERM(Module), none).

%% The state is what hosts have claimed.
-doc false.
-spec init([]) -> {ok, #{pid() => [module()]}}.
init([]) ->
    proc_lib:set_label(?MODULE),
    Claimed = maps:groups_from_list(fun({_, Host}) -> Host end, fun({Module, _}) -> Module end,
                                    [{Module, Host} || {?TERM(Module), #{host := Host}} <- persistent_term:get()]),
    _ = [monitor(process, Host) || Host <- maps:keys(Claimed)],
    {ok, Claimed}.

-doc false.
handle_call({claim, Modules, #{host := Host} = Births}, _, Claimed) ->
    case [{observed, M, Other} || M <- Modules, #{host := Other} <- [find(M)], is_process_alive(Other)] of
        [] ->
            lists:foreach(fun(M) -> persistent_term:put(?TERM(M), Births) end, Modules),
            monitor(process, Host),
            {reply, ok, Claimed#{Host => Modules}};
        [Taken | _] ->
            {reply, {error, Taken}, Claimed}
    end;
handle_call({release, Host}, _, Claimed) ->
    {reply, ok, released(Host, Claimed)}.

-doc false.
handle_cast(_, Claimed) -> {noreply, Claimed}.

-doc false.
handle_info({'DOWN', _, process, Host, _}, Claimed) ->
    {noreply, released(Host, Claimed)};
handle_info(_, Claimed) ->
    {noreply, Claimed}.

released(Host, Claimed) ->
    lists:foreach(fun(M) -> given_back(M, Host) end, maps:get(Host, Claimed, [])),
    maps:remove(Host, Claimed).

%% Of a host that was killed nobody has heard that it observes no more.
given_back(Module, Host) ->
    case find(Module) of
        #{host := Host, switch := Switch} ->
            ok = atomics:put(Switch, 1, 0),
            persistent_term:erase(?TERM(Module));
        _ -> false
    end.
