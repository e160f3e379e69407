-module(witness_instrument).
-moduledoc """
The plug point of a run: what connects the events of a system, or of a log, to monitors.

A run starts one instrument and uses it only through this module, so it knows no instrument by name. The implementations are

- `m:witness_outline_pool`: outline and central, over the VM's tracing (`evm`);
- `m:witness_outline_dispatcher`: outline and central, over the native source;
- `m:witness_inline_coordinator`: inline;
- `m:witness_inline_tree_watch`: no monitors, only which processes of a system are alive (a part of inline);
- `m:witness_offline`: a log in place of a system.

What an instrument can do besides is data, `t:abilities/0`: each ability but `replace` needs a callback, and the run does without
where it is not there.

## Messages to the run

An instrument starts monitors and reports each to the run, in messages that all instruments share: `{monitor, Reader, Meta}`
before the monitor's `{slice, Reader, Outcome}` and `{verdict, Reader, Outcome}`, several of them as `{reports, Reports}`. It
reports that all processes have ended by `{ended, Why}`, and how the first process ended by `{system_ended, Reason}`. *Invariant:*
when `stop/1` has returned, the announcement of each monitor is in the run's mailbox; if it has returned `later`, it follows, before
`{log_ended, How}`.
""".

-export([new/1, process/1, can/2, launch/3, parents/2, parent_pids/1, servers/3, alive/1, awaited/1, adopt_node/2, attach/3,
         replace/2, stop/1]).
-export([each/2, acknowledge/2, lives/2, give_up/1, inherit/3, called/1, seen/1]).

-export_type([t/0, started/0, parent/0, abilities/0, ability/0, chosen/0, counts/0, sight/0]).

-doc "How many processes were born with a signature: its module, function and arity, or of funs only the module.".
-type sight() :: {module(), Function :: atom(), arity() | '_', Count :: pos_integer()}.

-doc "An instrument of a run, with the process that it is linked to.".
-opaque t() :: {module(), pid()}.

-doc "What a module gives back when it has started: itself, its process, and a function that counts, also when the process has ended.".
-type started() :: {module(), pid(), fun(() -> counts())}.

-doc """
- `attach`: it observes processes that run already (`c:attach/3`);
- `parents`: it observes what given processes will spawn (`c:parents/2`);
- `servers`: it observes what processes that are not of the system spawn for it (`c:servers/3`);
- `adopt_node`: it observes all processes of the node (`c:adopt_node/2`);
- `alive`: it knows which observed processes are alive (`c:alive/1`);
- `awaited`: it knows for which of these the run waits (`c:awaited/1`), if not for all;
- `replace`: it exchanges the specifications of a run (`c:replace/2`), or why not;
- `each`: satisfied monitors may be counted instead of reported, until each is wanted (`c:each/2`);
- `acknowledge`: it waits until the run has passed on what was found (`c:acknowledge/2`);
- `lives`: it reports births and ends to the history of the run, which has no other way to know of them (`c:lives/2`);
- `give_up`: monitors that it runs may delay its end, until it gives them up (`c:give_up/1`);
- `inherit`: if its process dies, the run inherits a table of monitors that were not announced (`c:inherit/2`);
- `called`: it remembers what processes were called that have ended (`c:called/1`);
- `seen`: it counts the signatures that processes were born with (`c:seen/1`).
""".
-type abilities() :: #{attach := boolean(), parents := boolean(), servers := boolean(), adopt_node := boolean(),
                       alive := boolean(), awaited := boolean(), replace := true | {false, Why :: atom()}, each := boolean(),
                       acknowledge := boolean(), lives := boolean(), give_up := boolean(), inherit := boolean(),
                       called := boolean(), seen := boolean()}.

-type ability() :: attach | parents | servers | adopt_node | alive | awaited | replace | each | acknowledge | lives | give_up
                 | inherit | called | seen.

-doc "Whether a process was chosen, and whether it is one of Witness's own. Both may be called repeatedly.".
-type chosen() :: #{chosen := fun((pid()) -> boolean()), own := fun((pid()) -> boolean())}.

-doc """
Observed so far: processes, events, and the number of live processes that the run waits for. `unannounced`: monitors that have
begun and are not announced yet. For a log also the lines and bytes that were read, and its size in bytes.
""".
-type counts() :: #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer(),
                    unannounced => non_neg_integer(),
                    lines => non_neg_integer(), read => non_neg_integer(), size => pos_integer() | unknown}.

-doc """
A process; its children are observed. With a signature it is observed itself, as if it had been spawned with that now; over `evm` and
inline it is not.
""".
-type parent() :: pid() | {pid(), witness_event:signature()}.

-doc "What the instrument can do.".
-callback abilities() -> abilities().

-doc "Starts the system's first process under observation, or the reading of a log.".
-callback launch(pid(), System :: term(), GroupLeader :: pid()) -> {ok, pid()}.

-doc """
Ends observation in good order: all gathered events have reached their monitors, and each monitor was notified that watching
has ended. `later`: that is not so yet when the call returns, and `{log_ended, How}` says when it is.
""".
-callback stop(pid()) -> ok | later.

-doc "How many tracers own a partition now, how many are idle, and how many owned one at most at the same time.".
-callback info(pid()) -> #{busy := non_neg_integer(), idle := non_neg_integer(), most := pos_integer()}.

-doc "Observes what these processes will spawn, directly or not. The run waits for these too, but no monitor reads them.".
-callback parents(pid(), [parent()]) -> ok.

-doc """
Observes what these processes will spawn while they handle a call of an observed process, or, with `Always`, whatever they spawn from
now on. The run waits neither for them nor for what they spawn, and no monitor reads them. Processes that are observed stay so.
""".
-callback servers(pid(), [pid()], Always :: boolean()) -> ok.

-doc "The processes that are observed and have not ended.".
-callback alive(pid()) -> [pid()].

-doc "Those of them that the run waits for.".
-callback awaited(pid()) -> [pid()].

-doc "Observes every process of the node for which `Own` is false, with all that they spawn.".
-callback adopt_node(pid(), Own :: fun((pid()) -> boolean())) -> ok.

-doc """
Observes the chosen processes, which run already, and all that they spawn from now on; if a group reads them, also those
that they have spawned before. Their monitors begin with an `attached`. `Held`: whether the run waits for their end. Returns
the observed processes that were not chosen. If groups may lack further processes, the instrument sends `orphans` to the run.
""".
-callback attach(pid(), chosen(), Held :: boolean()) -> {ok, [pid()]}.

-doc """
From now on new processes have these maps, each of them either all of the old ones or all of the new ones. When the call
returns, no monitor is started by the old maps any more, and each one that was has been reported to the run.
""".
-callback replace(pid(), [witness_instrument_map:instrumentation()]) -> ok.

-doc "Whether each verdict is reported by itself from now on. Otherwise satisfied monitors may only be counted.".
-callback each(pid(), boolean()) -> ok.

-doc "The run has passed on what was found in this part.".
-callback acknowledge(pid(), Number :: pos_integer()) -> ok.

-doc "From now on births and ends are reported to this process as well.".
-callback lives(pid(), To :: pid()) -> ok.

-doc "Stops waiting for monitors that have not answered. They end as crashed.".
-callback give_up(pid()) -> ok.

-doc "The process of the instrument has died, and its table is the run's: the announcements of the monitors in it. Deletes the table.".
-callback inherit(Dead :: pid(), ets:table()) -> [Report :: tuple()].

-doc """
A function that gives the registered name of an observed process, or else the module that it was spawned with; none if neither is
known any more. It works when the process of the instrument has ended too.
""".
-callback called(pid()) -> fun((pid()) -> [atom()]).

-doc """
A function that gives how many processes were born with each signature, as far as that is known, for the warning that a property has
monitored nothing. It works when the process of the instrument has ended too.
""".
-callback seen(pid()) -> fun(() -> [sight()]).

-optional_callbacks([parents/2, servers/3, alive/1, awaited/1, adopt_node/2, attach/3, replace/2, each/2, acknowledge/2, lives/2,
                     give_up/1, inherit/2, called/1, seen/1]).

-doc "The instrument of a run.".
-spec new(started()) -> t().
new({Module, Pid, _}) -> {Module, Pid}.

-doc "The process that the run is linked to.".
-spec process(t()) -> pid().
process({_, Pid}) -> Pid.

-doc "Whether the instrument has this ability.".
-spec can(ability(), t()) -> boolean() | {false, Why :: atom()}.
can(Ability, {Module, _}) -> maps:get(Ability, Module:abilities()).

-doc "See `c:launch/3`.".
-spec launch(t(), System :: term(), GroupLeader :: pid()) -> {ok, pid()}.
launch({Module, Pid}, System, GroupLeader) -> Module:launch(Pid, System, GroupLeader).

-doc "See `c:parents/2`.".
-spec parents(t(), [parent()]) -> ok.
parents({Module, Pid}, Parents) -> Module:parents(Pid, Parents).

-doc "The processes without their signatures.".
-spec parent_pids([parent()]) -> [pid()].
parent_pids(Parents) -> [case Parent of {P, _} -> P; P -> P end || Parent <- Parents].

-doc "See `c:servers/3`.".
-spec servers(t(), [pid()], Always :: boolean()) -> ok.
servers({Module, Pid}, Servers, Always) -> Module:servers(Pid, Servers, Always).

-doc "See `c:alive/1`; none if the instrument does not know.".
-spec alive(t()) -> [pid()].
alive({Module, Pid} = I) -> if_able(alive, I, fun() -> Module:alive(Pid) end, []).

-doc "See `c:awaited/1`; all that are alive if the instrument does not know.".
-spec awaited(t()) -> [pid()].
awaited({Module, Pid} = I) ->
    case can(awaited, I) of
        true -> Module:awaited(Pid);
        false -> alive(I)
    end.

-doc "See `c:adopt_node/2`.".
-spec adopt_node(t(), fun((pid()) -> boolean())) -> ok.
adopt_node({Module, Pid}, Own) -> Module:adopt_node(Pid, Own).

-doc "See `c:attach/3`.".
-spec attach(t(), chosen(), Held :: boolean()) -> {ok, [pid()]}.
attach({Module, Pid}, Chosen, Held) -> Module:attach(Pid, Chosen, Held).

-doc "See `c:replace/2`; only with the ability.".
-spec replace(t(), [witness_instrument_map:instrumentation()]) -> ok.
replace({Module, Pid}, Maps) -> Module:replace(Pid, Maps).

-doc "See `c:stop/1`. `Most`: how many tracers owned a partition at the same time.".
-spec stop(t()) -> {ok, Most :: pos_integer()} | later.
stop({Module, Pid}) ->
    #{most := Most} = Module:info(Pid),
    case Module:stop(Pid) of
        ok -> {ok, Most};
        later -> later
    end.

-doc "See `c:each/2`; without the ability each verdict is reported anyway.".
-spec each(t(), boolean()) -> ok.
each({Module, Pid} = I, Each) -> if_able(each, I, fun() -> Module:each(Pid, Each) end, ok).

-doc "See `c:acknowledge/2`.".
-spec acknowledge(t(), Number :: pos_integer()) -> ok.
acknowledge({Module, Pid} = I, Number) -> if_able(acknowledge, I, fun() -> Module:acknowledge(Pid, Number) end, ok).

-doc "See `c:lives/2`; without the ability the history traces the VM.".
-spec lives(t(), To :: pid()) -> ok.
lives({Module, Pid} = I, To) -> if_able(lives, I, fun() -> Module:lives(Pid, To) end, ok).

-doc "See `c:give_up/1`.".
-spec give_up(t()) -> ok.
give_up({Module, Pid} = I) -> if_able(give_up, I, fun() -> Module:give_up(Pid) end, ok).

-doc "See `c:inherit/2`.".
-spec inherit(t(), Dead :: pid(), ets:table()) -> [Report :: tuple()].
inherit({Module, _} = I, Dead, Table) -> if_able(inherit, I, fun() -> Module:inherit(Dead, Table) end, []).

-doc "See `c:called/1`.".
-spec called(t()) -> fun((pid()) -> [atom()]).
called({Module, Pid} = I) -> if_able(called, I, fun() -> Module:called(Pid) end, fun(_) -> [] end).

-doc "See `c:seen/1`.".
-spec seen(t()) -> fun(() -> [sight()]).
seen({Module, Pid} = I) -> if_able(seen, I, fun() -> Module:seen(Pid) end, fun() -> [] end).

if_able(Ability, I, Do, Otherwise) ->
    case can(Ability, I) of
        true -> Do();
        false -> Otherwise
    end.
