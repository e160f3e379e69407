-module(witness_inline_registry).
-moduledoc """
Which run observes the processes that begin in a module.

Woven code asks at the birth of each process (`find/1`), even if Witness is not started. That reads a persistent term, which does
not exist if no run observes the module. A module belongs to one run at a time, however it was woven. The claims of a run end with
its coordinator, however the coordinator ends. If this process was killed as well, a term may remain that names a dead coordinator.
The next registry process monitors that coordinator, and releases the term.
""".
-behaviour(gen_server).

-export([start_link/0, claim/2, release/1, find/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([observer/0]).

-doc """
What a process that is born needs to know of the run.

- `coordinator`: the process that monitors report to, and that answers for them;
- `outside`: what watches calls of modules that are not woven;
- `switch`: three numbers. The first is 1 while the run observes. The second is 1 while each verdict must be delivered by
  itself. The third is the coordinator's time, which shows that a monitor has run for too long;
- `birth_table`: where processes leave what they do not send to the coordinator (`m:witness_inline_birth_table`);
- `kept`: where they store what the coordinator needs when they are dead (`m:witness_inline_kept`);
- `events`: the count of events;
- `stamped`: whether events have times;
- `known`: processes that are not to be observed from here on: `{Pid, old}` was born before the run, `{Pid, seen}` is observed
  already;
- `scope`: whether a process belongs to what is observed;
- `signatures`: the rows of the project for signatures;
- `maps`: which monitors a process gets, and `prepared`: these monitors, with `explain`, `max_slices` and the like.
""".
-type observer() :: #{coordinator := pid(), outside := witness_inline_outside:session(), switch := atomics:atomics_ref(),
                      events := counters:counters_ref(), stamped := boolean(), known := ets:table(),
                      kept := witness_inline_kept:table(),
                      birth_table := witness_inline_birth_table:table(), scope := fun((pid()) -> boolean()),
                      maps := [witness_instrument_map:instrumentation()], signatures => witness_event_wrapper:table(),
                      prepared := #{{module(), term()} => witness_inline_monitors:prepared()}}.

-define(TERM(Module), {?MODULE, Module}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Has processes that begin in these modules observed, until the coordinator ends. It claims all of the modules, or none.".
-spec claim([module()], observer()) -> ok | {error, {observed, module(), Coordinator :: pid()}}.
claim(Modules, Observer) -> gen_server:call(?MODULE, {claim, Modules, Observer}, infinity).

-doc "Releases the modules that a coordinator has claimed.".
-spec release(Coordinator :: pid()) -> ok.
release(Coordinator) -> gen_server:call(?MODULE, {release, Coordinator}, infinity).

-doc "The run that observes processes that begin in this module.".
-spec find(module()) -> observer() | none.
find(Module) -> persistent_term:get(?TERM(Module), none).

%% The state is the modules that each coordinator has claimed.
-doc false.
-spec init([]) -> {ok, #{pid() => [module()]}}.
init([]) ->
    proc_lib:set_label(?MODULE),
    Claimed = maps:groups_from_list(fun({_, Coordinator}) -> Coordinator end, fun({Module, _}) -> Module end,
                                    [{Module, Coordinator}
                                     || {?TERM(Module), #{coordinator := Coordinator}} <- persistent_term:get()]),
    _ = [monitor(process, Coordinator) || Coordinator <- maps:keys(Claimed)],
    {ok, Claimed}.

-doc false.
handle_call({claim, Modules, #{coordinator := Coordinator} = Observer}, _, Claimed) ->
    case [{observed, M, Other} || M <- Modules, #{coordinator := Other} <- [find(M)], is_process_alive(Other)] of
        [] ->
            lists:foreach(fun(M) -> persistent_term:put(?TERM(M), Observer) end, Modules),
            monitor(process, Coordinator),
            {reply, ok, Claimed#{Coordinator => Modules}};
        [Taken | _] ->
            {reply, {error, Taken}, Claimed}
    end;
handle_call({release, Coordinator}, _, Claimed) ->
    {reply, ok, release_all(Coordinator, Claimed)}.

-doc false.
handle_cast(_, Claimed) -> {noreply, Claimed}.

-doc false.
handle_info({'DOWN', _, process, Coordinator, _}, Claimed) ->
    {noreply, release_all(Coordinator, Claimed)};
handle_info(_, Claimed) ->
    {noreply, Claimed}.

release_all(Coordinator, Claimed) ->
    lists:foreach(fun(M) -> give_back(M, Coordinator) end, maps:get(Coordinator, Claimed, [])),
    maps:remove(Coordinator, Claimed).

%% A coordinator that was killed could not set its switch to off.
give_back(Module, Coordinator) ->
    case find(Module) of
        #{coordinator := Coordinator, switch := Switch} ->
            ok = atomics:put(Switch, 1, 0),
            persistent_term:erase(?TERM(Module));
        _ -> false
    end.
