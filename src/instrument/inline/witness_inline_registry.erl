-module(witness_inline_registry).
-moduledoc """
Which run observes the processes that begin in a module.

Woven code asks at the birth of each process (`find/1`), even if Witness is not started. That reads a persistent term, which does
not exist if no run observes the module. A module belongs to one run at a time, however it was woven. The claims of
a run end with its host, however the host ends. If this process was killed as well, a term may remain that names a dead
host. The next registry process monitors that host, and releases the term.
""".
-behaviour(gen_server).

-export([start_link/0, claim/2, release/1, find/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([births/0]).

-doc """
What a process that is born needs to know of the run.

- `host`: the process that monitors report to, and that answers for them;
- `outside`: what watches calls of modules that are not woven;
- `switch`: three numbers. The first is 1 while the run observes. The second is 1 while each verdict must be delivered by itself. The
  third is the host's time, which shows that a monitor has run for too long;
- `notes`: where processes leave what they do not send to the host (`m:witness_inline_birth_table`);
- `kept`: where they store what the host needs when they are dead (`m:witness_inline_kept`);
- `events`: the count of events;
- `stamped`: whether events have times;
- `known`: processes that are not to be observed from here on: `{Pid, old}` was born before the run, `{Pid, seen}` is observed already;
- `scope`: whether a process belongs to what is observed;
- `maps`: which monitors a process gets, and `prepared`: these monitors, with `explain`, `max_slices` and the like.
""".
-type births() :: #{host := pid(), outside := witness_inline_outside:session(), switch := atomics:atomics_ref(), events := counters:counters_ref(),
                    stamped := boolean(), known := ets:table(), kept := witness_inline_kept:table(), notes := witness_inline_birth_table:notes(), scope := fun((pid()) -> boolean()),
                    maps := [witness_instrument_map:instrumentation()],
                    prepared := #{{module(), term()} => witness_inline_monitors:prepared()}}.

-define(TERM(Module), {?MODULE, Module}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Has processes that begin in these modules observed, until the host ends. It claims all of the modules, or none.".
-spec claim([module()], births()) -> ok | {error, {observed, module(), Host :: pid()}}.
claim(Modules, Births) -> gen_server:call(?MODULE, {claim, Modules, Births}, infinity).

-doc "Releases the modules that a host has claimed.".
-spec release(Host :: pid()) -> ok.
release(Host) -> gen_server:call(?MODULE, {release, Host}, infinity).

-doc "The run that observes processes that begin in this module.".
-spec find(module()) -> births() | none.
find(Module) -> persistent_term:get(?TERM(Module), none).

%% The state is the modules that each host has claimed.
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

%% A host that was killed could not set its switch to off.
given_back(Module, Host) ->
    case find(Module) of
        #{host := Host, switch := Switch} ->
            ok = atomics:put(Switch, 1, 0),
            persistent_term:erase(?TERM(Module));
        _ -> false
    end.
