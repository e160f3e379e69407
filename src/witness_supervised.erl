-module(witness_supervised).
-moduledoc """
A run in the supervision tree of an application: it watches what runs already, such as the node, from the start of this process to its
end.

```erlang
init([]) ->
    Watch = #{system => node, specs => ["specs/shop.hml"]},
    {ok, {#{}, [shop_server:child_spec(), witness_supervised:child_spec({shop_watch, Watch})]}}.
```

The process can be used like the run: `witness:verdicts(shop_watch)`. It hands each call to the run. It is a process of its own, because
the run has to be stopped in order when the supervisor ends it: what was seen before is judged then, and a log is closed.

The child is `temporary`. If the run ends, whatever the reason, it is not restarted, and it never ends the application. A restarted
run has missed events.
""".
-behaviour(gen_server).

-export([start_link/1, start_link/2, child_spec/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-export_type([name/0]).

-doc "A registered name, or one that `gen_server` takes.".
-type name() :: atom() | {global, term()} | {via, module(), term()}.

-record(supervised, {run :: witness:run(), monitor :: reference()}).

%% Milliseconds that a run may take to stop, beside the time for its monitors (option `drain`).
-define(STOP_MS, 10_000).

-doc "Starts a run with the options of `witness:start/1`. The run ends with this process, not with the caller.".
-spec start_link(map()) -> {ok, pid()} | {error, witness:error()}.
start_link(Options) -> started(gen_server:start_link(?MODULE, Options, [])).

-doc "The same under a name. The error `{already_started, Pid}` is that of `gen_server`.".
-spec start_link(name(), map()) -> {ok, pid()} | {error, witness:error() | {already_started, pid()}}.
start_link(Name, Options) when is_atom(Name) -> started(gen_server:start_link({local, Name}, ?MODULE, Options, []));
start_link(Name, Options) -> started(gen_server:start_link(Name, ?MODULE, Options, [])).

started({ok, Pid}) -> {ok, Pid};
started({error, _} = Error) -> Error.

-doc "A specification of a child, for options or for a name with options.".
-spec child_spec(map() | {name(), map()}) -> supervisor:child_spec().
child_spec({Name, Options}) -> child_spec(Name, [Name, Options], Options);
child_spec(Options) -> child_spec(witness, [Options], Options).

child_spec(Id, Arguments, Options) ->
    #{id => Id, start => {?MODULE, start_link, Arguments}, restart => temporary, shutdown => shutdown(Options)}.

%% Wrong options are an error of the start.
shutdown(#{drain := Drain}) when is_integer(Drain), Drain > 0 -> Drain + ?STOP_MS;
shutdown(#{drain := infinity}) -> infinity;
shutdown(_) -> maps:get(drain, witness_option:defaults(witness_option_schema:run())) + ?STOP_MS.

-doc false.
-spec init(map()) -> {ok, #supervised{}} | {error, witness:error()}.
init(Options) ->
    process_flag(trap_exit, true),
    case witness:start(owned(Options)) of
        {ok, Run} -> {ok, #supervised{run = Run, monitor = monitor(process, Run)}};
        {error, _} = Error -> Error
    end.

owned(Options) when is_map(Options) -> maps:merge(#{owner => self()}, Options);
owned(Options) -> Options.

-doc false.
-spec handle_call(term(), gen_server:from(), #supervised{}) -> {noreply, #supervised{}}.
handle_call(Request, From, S = #supervised{run = Run}) ->
    %% The run replies to the caller.
    Run ! {'$gen_call', From, Request},
    {noreply, S}.

-doc false.
-spec handle_cast(term(), #supervised{}) -> {noreply, #supervised{}}.
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #supervised{}) -> {noreply, #supervised{}} | {stop, Reason :: term(), #supervised{}}.
handle_info({'DOWN', Monitor, process, _, Reason}, S = #supervised{monitor = Monitor}) ->
    %% It was stopped. The process that did so may be linked to this one.
    {stop, case Reason of shutdown -> normal; _ -> Reason end, S};
handle_info(_, S) -> {noreply, S}.

-doc false.
-spec terminate(term(), #supervised{}) -> ok.
terminate(_, #supervised{run = Run}) ->
    %% An error says that the run has ended.
    _ = witness:stop(Run),
    ok.
