-module(witness_check_crashes).
-moduledoc """
The monitor of the check `crashes`: whether its process ends by an error, and which ends by an error it was told of.

A process ends by an *error* if its exit reason has a stack, as the VM gives it to an exception that nothing has caught, or
if a call of OTP has failed. An exit with another reason is one that the author of the process has chosen.

A process is *told* of the end of another if it receives the message `'EXIT'` of a link, or that of a process monitor.

Its verdict is `no` if it has something to report; whether that is a violation follows from the reports of all processes
(`m:witness_run_checks`).
""".
-behaviour(witness_monitor).

-export([init/3, attached/3, slice/2, handle_event/2, handle_end/2, alphabet/1]).
-export([ended/2, told/1, origin/1]).

-export_type([report/0, ended/0]).

-doc """
`crash`: the reason by which the process has ended, if it is an error; `told`: of which ends by an error it was told; `more`: whether
there were more than are kept.
""".
-type report() :: #{crash := none | {error, Reason :: term()}, told := told(), more := boolean()}.

-type told() :: #{ended() => []}.

-doc "The end of a process by an error: the process, or `name` if it was monitored by its name, and the hash of the reason.".
-type ended() :: {witness_event:proc() | name, Hash :: non_neg_integer()}.

-type state() :: {told(), More :: boolean()}.

%% One process may be told of very many.
-define(MAX_TOLD, 10_000).

-doc false.
-spec init(witness_event:signature(), witness_event:proc(), undefined) -> {ok, state(), undefined}.
init(_, _, _) -> {ok, {#{}, false}, undefined}.

-doc false.
-spec attached(mfa(), witness_event:proc(), undefined) -> {ok, state(), undefined}.
attached(_, _, _) -> {ok, {#{}, false}, undefined}.

%% What was received last is shown with a crash.
-doc false.
-spec alphabet(undefined) -> [witness_event:kind()].
alphabet(_) -> [init, recv, exit].

%% The VM loads modules, such as those that print a crash, by messages to the process that needs them.
-doc false.
-spec slice(witness_event:event(), undefined) -> skip | all.
slice({recv, _, _, {code_server, _}, _}, _) -> skip;
slice(_, _) -> all.

-doc false.
-spec handle_event(witness_event:event(), state()) -> {ok, state()} | {verdict, yes | no, report()}.
handle_event({recv, _, _, Message, _}, {Told, More} = State) ->
    case told(Message) of
        {true, Ended} when map_size(Told) < ?MAX_TOLD -> {ok, {maps:put(Ended, [], Told), More}};
        {true, _} -> {ok, {Told, true}};
        false -> {ok, State}
    end;
handle_event({exit, _, Reason, _}, State) ->
    case is_error(Reason) of
        true -> report({error, Reason}, State);
        false -> report(none, State)
    end;
handle_event(_, State) -> {ok, State}.

report(none, {Told, false}) when map_size(Told) =:= 0 -> {verdict, yes, undefined};
report(Crash, {Told, More}) -> {verdict, no, #{crash => Crash, told => Told, more => More}}.

-doc false.
-spec handle_end(complete | stopped, state()) -> {yes | no, undefined | report()}.
handle_end(_, State) ->
    {verdict, Verdict, Info} = report(none, State),
    {Verdict, Info}.

-doc "The end of a process by this error. A process that was monitored by its name is a tuple of the name and its node.".
-spec ended(witness_event:proc() | {Name :: atom(), node()}, Reason :: term()) -> ended().
ended({Name, Node}, Reason) when is_atom(Name), is_atom(Node) -> {name, erlang:phash2(Reason)};
ended(P, Reason) -> {P, erlang:phash2(Reason)}.

-doc "Which end by an error a message tells of.".
-spec told(Message :: term()) -> {true, ended()} | false.
told({'EXIT', P, Reason}) -> told(P, Reason);
%% The process that monitors can choose another first element than 'DOWN'.
told({_, _, process, P, Reason}) -> told(P, Reason);
told(_) -> false.

told(P, Reason) ->
    case is_error(Reason) of
        true -> {true, ended(P, Reason)};
        false -> false
    end.

-doc "The error that has led to this one: that of the process that was called, if a call has failed because of it.".
-spec origin(Reason :: term()) -> term().
origin({Inner, {M, F, Args}} = Reason) when is_atom(M), is_atom(F), is_list(Args) ->
    case is_error(Inner) of
        true -> origin(Inner);
        false -> Reason
    end;
origin(Reason) -> Reason.

%% An uncaught exception has a stack. A call of OTP, or of Elixir, that fails has its function and arguments; a server that is shut
%% down while it is called is no error (`shutdown` may have a term with it).
is_error({_, [{M, F, Args, Location} | _]})
  when is_atom(M), is_atom(F), is_list(Location), (is_integer(Args) orelse is_list(Args)) ->
    true;
is_error({shutdown, {_, _, _}}) -> false;
is_error({{shutdown, _}, {_, _, _}}) -> false;
is_error({_, {M, F, Args}}) when is_atom(M), is_atom(F), is_list(Args) -> true;
is_error(_) -> false.
