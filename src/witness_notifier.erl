-module(witness_notifier).
-moduledoc """
Tells the world of verdicts: the user's callback, the logger, telemetry, and subscribers.

It is a process of its own, so that a slow callback delays nobody. A callback that raises
is taken off and reported. A subscriber whose mailbox is full misses verdicts, and is told
how many when there is room again.
""".

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, verdict/2, reached/2, flush/1, summary/2, subscribe/2]).
-export([init/2]).

-define(MAILBOX, 1000).

-record(notifier, {run :: pid(),
                   callback :: undefined | fun((witness:verdict()) -> term()),
                   log :: boolean(),
                   subscribers = #{} :: #{reference() => {pid(), Missed :: non_neg_integer()}}}).

-spec start_link(witness_options:options()) -> pid().
start_link(Options) ->
    Pid = proc_lib:spawn_opt(?MODULE, init, [self(), Options], [link, {fullsweep_after, 10}]),
    true = is_pid(Pid),
    Pid.

-spec verdict(pid(), witness:verdict()) -> ok.
verdict(Notifier, Verdict) -> Notifier ! {verdict, Verdict}, ok.

-doc "Calls a function when everything before has been told.".
-spec reached(pid(), fun(() -> ok)) -> ok.
reached(Notifier, Fun) -> Notifier ! {reached, Fun}, ok.

-doc "Asks for `{flushed, Notifier}` when everything before has been told.".
-spec flush(pid()) -> ok.
flush(Notifier) -> Notifier ! flush, ok.

-spec summary(pid(), witness:summary()) -> ok.
summary(Notifier, Summary) -> Notifier ! {summary, Summary}, ok.

-spec subscribe(pid(), pid()) -> reference().
subscribe(Notifier, Pid) ->
    Ref = make_ref(),
    Notifier ! {subscribe, Pid, Ref},
    Ref.

-doc false.
-spec init(pid(), witness_options:options()) -> no_return().
init(Run, #{on_verdict := Callback, log := Log}) ->
    proc_lib:set_label(witness_notifier),
    loop(#notifier{run = Run, callback = Callback, log = Log}).

loop(N = #notifier{run = Run}) ->
    receive
        {verdict, V} ->
            log(V, N),
            telemetry(V),
            loop(callback(V, tell({verdict, V}, N)));
        {summary, S} -> loop(tell({summary, S}, N));
        {subscribe, Pid, Ref} -> loop(N#notifier{subscribers = (N#notifier.subscribers)#{Ref => {Pid, 0}}});
        {reached, Fun} -> ok = Fun(), loop(N);
        flush -> Run ! {flushed, self()}, loop(N)
    end.

callback(_, N = #notifier{callback = undefined}) -> N;
callback(V, N = #notifier{callback = Callback}) ->
    try Callback(V) of
        _ -> N
    catch
        Class:Reason:Stack ->
            ?LOG_ERROR(#{text => "on_verdict raised and is not called again",
                         class => Class, reason => Reason, stacktrace => Stack}, #{domain => [witness]}),
            N#notifier{callback = undefined}
    end.

log(#{verdict := no} = V, #notifier{log = true}) ->
    #{spec := Spec, name := Name, slice := Slice, process := P, signature := Signature} = V,
    ?LOG_WARNING("~ts~ts violated by ~tp, ~ts~ts",
                 [Spec, case Name of undefined -> ""; _ -> [" (", Name, ")"] end, P,
                  witness_event:format_signature(Signature), slice(Slice)],
                 #{domain => [witness], verdict => V});
log(_, _) -> ok.

slice(undefined) -> "";
slice(Values) -> [[", ", Name, " = ", witness_event:format_term(Value, 80)] || {Name, Value} <- Values].

%% The library is the user's: it is called where it is loaded, and nothing depends on it.
telemetry(V) ->
    Telemetry = telemetry,
    _ = erlang:function_exported(Telemetry, execute, 3) andalso
        Telemetry:execute([witness, verdict], #{count => 1}, V),
    ok.

tell(Message, N = #notifier{subscribers = Subscribers}) ->
    N#notifier{subscribers = maps:filtermap(fun(Ref, S) -> tell(Message, Ref, S) end, Subscribers)}.

tell(Message, Ref, {Pid, Missed}) ->
    case process_info(Pid, message_queue_len) of
        undefined -> false;
        {_, Length} when Length >= ?MAILBOX, element(1, Message) =:= verdict -> {true, {Pid, Missed + 1}};
        _ ->
            _ = Missed > 0 andalso (Pid ! {witness, Ref, {missed, Missed}}),
            Pid ! {witness, Ref, Message},
            {true, {Pid, 0}}
    end.
