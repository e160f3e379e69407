-module(witness_run_notifier).
-moduledoc """
Notifies of verdicts: the user's callback, the logger, telemetry, and subscribers.

It is a process of its own, so that a slow callback delays no other process. If the callback raises, it
is removed and the error is logged. If the mailbox of a subscriber is full, the subscriber misses verdicts; when its queue
is short again, it is notified how many.

Violations are logged as reports, level `warning`, domain `[witness]`, with the whole verdict as `verdict` in the
metadata. The handler `default` of OTP stops all domains but its own, so it gets a filter that lets this one through; a filter
of the user can still stop it. A report has no key `label`: Elixir's Logger drops reports with a label that it does not know.
If there are more violations per second than the option `log_rate` allows, the others are counted. A report says
how many they were, within a second, and at the latest before the run has ended.
""".

-include_lib("kernel/include/logger.hrl").

-export([hide_verdicts/0, start_link/1, call_back/2, notify_verdict/2, call_when_delivered/2, flush/1, notify_summary/2,
         subscribe/3]).
-export([init/2, format/1]).

-export_type([form/0]).

-doc "Makes of a verdict or summary what a subscriber gets.".
-type form() :: fun(({verdict, witness:verdict()} | {summary, witness:summary()}) -> term()).

-define(MAX_QUEUE_LENGTH, 1000).
%% Milliseconds until the number of violations that were not logged is logged.
-define(LEFT_OUT_MS, 1000).

-record(notifier, {run :: pid(),
                   callback :: undefined | fun((witness:verdict()) -> term()),
                   log :: boolean(),
                   throttle :: witness_run_throttle:throttle(),
                   timer :: undefined | reference(),
                   telemetry :: witness_run_telemetry:run(),
                   subscribers = #{} :: #{reference() => subscriber()}}).

-type subscriber() :: {pid(), form(), Missed :: non_neg_integer()}.

-spec start_link(witness_options:options()) -> pid().
start_link(Options) ->
    Pid = proc_lib:spawn_opt(?MODULE, init, [self(), Options], [link, {fullsweep_after, 10}]),
    true = is_pid(Pid),
    Pid.

%% Lets the handler `default' show log events of verdicts, also a handler that was added after the last call.
show_verdicts() ->
    case logger:get_handler_config(default) of
        {ok, #{filter_default := stop}} ->
            %% An error means that the filter is there already, or that the handler is gone.
            _ = logger:add_handler_filter(default, witness, {fun logger_filters:domain/2, {log, sub, [witness]}}),
            ok;
        _ -> ok
    end.

-doc "Removes the filter by which the handler `default` shows log events of verdicts.".
-spec hide_verdicts() -> ok.
hide_verdicts() ->
    _ = logger:remove_handler_filter(default, witness),
    ok.

-spec notify_verdict(pid(), witness:verdict()) -> ok.
notify_verdict(Notifier, Verdict) -> Notifier ! {verdict, Verdict}, ok.

-doc "Calls a function when all earlier notifications have been delivered.".
-spec call_when_delivered(pid(), fun(() -> ok)) -> ok.
call_when_delivered(Notifier, Fun) -> Notifier ! {reached, Fun}, ok.

-doc "Asks for `{flushed, Notifier}` when all earlier notifications have been delivered.".
-spec flush(pid()) -> ok.
flush(Notifier) -> Notifier ! flush, ok.

-doc "Notifies of the end of the run, as the last notification; then sends `{told, Notifier}`.".
-spec notify_summary(pid(), witness:summary()) -> ok.
notify_summary(Notifier, Summary) -> Notifier ! {summary, Summary}, ok.

-spec subscribe(pid(), pid(), form()) -> reference().
subscribe(Notifier, Pid, Form) ->
    Ref = make_ref(),
    Notifier ! {subscribe, Pid, Form, Ref},
    Ref.

-doc false.
-spec init(pid(), witness_options:options()) -> no_return().
init(Run, #{on_verdict := Callback, log := Log, log_rate := Rate} = Options) ->
    proc_lib:set_label(witness_run_notifier),
    ok = witness_event:use_syntax(maps:get(syntax, Options)),
    _ = Log andalso show_verdicts(),
    loop(#notifier{run = Run, callback = Callback, log = Log, throttle = witness_run_throttle:new(Rate),
                   telemetry = witness_run_telemetry:report_start(Run, Options)}).

loop(N = #notifier{run = Run}) ->
    receive
        {verdict, V} ->
            ok = witness_run_telemetry:report_verdict(V, N#notifier.telemetry),
            loop(call_back_or_remove(V, send_to_subscribers({verdict, V}, log_verdict(V, N))));
        left_out -> loop(log_left_out(N));
        {summary, S} ->
            N1 = log_left_out(N),
            ok = witness_run_telemetry:report_end(S, N1#notifier.telemetry),
            N2 = send_to_subscribers({summary, S}, N1),
            Run ! {told, self()},
            loop(N2);
        {subscribe, Pid, Form, Ref} -> loop(N#notifier{subscribers = (N#notifier.subscribers)#{Ref => {Pid, Form, 0}}});
        {reached, Fun} -> ok = Fun(), loop(N);
        flush -> Run ! {flushed, self()}, loop(N);
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, N)
    end.

-doc "Calls a callback with a verdict. If it raises, the error is logged and nothing else happens.".
-spec call_back(fun((Verdict) -> term()), Verdict) -> ok.
call_back(OnVerdict, Verdict) ->
    try
        _ = OnVerdict(Verdict),
        ok
    catch
        Class:Reason:Stack ->
            ?LOG_ERROR(#{text => "on_verdict raised", class => Class, reason => Reason, stacktrace => Stack},
                       #{domain => [witness]})
    end.

call_back_or_remove(_, N = #notifier{callback = undefined}) -> N;
call_back_or_remove(V, N = #notifier{callback = Callback}) ->
    try Callback(V) of
        _ -> N
    catch
        Class:Reason:Stack ->
            ?LOG_ERROR(#{text => "on_verdict raised and is not called again",
                         class => Class, reason => Reason, stacktrace => Stack}, #{domain => [witness]}),
            N#notifier{callback = undefined}
    end.

log_verdict(#{verdict := no, spec := Spec, name := Name} = V, N = #notifier{log = true, throttle = Throttle}) ->
    case witness_run_throttle:allow({Spec, Name}, erlang:monotonic_time(millisecond), Throttle) of
        {true, Throttle1} ->
            Shown = maps:with([spec, name, process, signature, slice, syntax], V),
            log_report(Shown#{witness => violation}, #{verdict => V}),
            N#notifier{throttle = Throttle1};
        {false, Throttle1} -> start_timer(N#notifier{throttle = Throttle1})
    end;
log_verdict(_, N) -> N.

start_timer(N = #notifier{timer = undefined}) -> N#notifier{timer = erlang:send_after(?LEFT_OUT_MS, self(), left_out)};
start_timer(N) -> N.

log_left_out(N = #notifier{throttle = Throttle}) ->
    {LeftOut, Throttle1} = witness_run_throttle:take(Throttle),
    [log_report(#{witness => violations_left_out, spec => Spec, name => Name, count => Count}, #{})
     || {{Spec, Name}, Count} <- LeftOut],
    N#notifier{throttle = Throttle1, timer = undefined}.

log_report(Report, Metadata) -> ?LOG_WARNING(Report, Metadata#{domain => [witness], report_cb => fun ?MODULE:format/1}).

-doc "Formats a report of the logger.".
-spec format(logger:report()) -> {io:format(), [term()]}.
format(#{witness := violation, spec := Spec, name := Name, slice := Slice} = Report) ->
    {"~ts~ts violated~ts~ts", [Spec, format_name(Name), format_process(Report), format_slice(Slice, syntax(Report))]};
format(#{witness := violations_left_out, spec := Spec, name := Name, count := Count}) ->
    {"~ts~ts violated ~w times more, which were not logged (log_rate)", [Spec, format_name(Name), Count]}.

format_process(#{process := undefined}) -> "";
format_process(#{process := P, signature := undefined} = Report) -> [" by ", witness_event:format_proc(P, syntax(Report))];
format_process(#{process := P, signature := Signature} = Report) ->
    Syntax = syntax(Report),
    [" by ", witness_event:format_proc(P, Syntax), ", ", witness_event:format_signature(Signature, Syntax)].

syntax(#{syntax := Syntax}) -> Syntax;
syntax(Report) -> witness_event:syntax_of_function(maps:get(signature, Report, undefined)).

format_name(undefined) -> "";
format_name(Name) -> [" (", Name, ")"].

format_slice(undefined, _) -> "";
format_slice(Values, Syntax) -> [[", ", Name, " = ", witness_event:format_term(Value, 80, Syntax)] || {Name, Value} <- Values].

send_to_subscribers(Message, N = #notifier{subscribers = Subscribers}) ->
    N#notifier{subscribers = maps:filtermap(fun(Ref, S) -> send_to_subscriber(Message, Ref, S) end, Subscribers)}.

send_to_subscriber(Message, Ref, {Pid, Form, Missed}) ->
    case process_info(Pid, message_queue_len) of
        undefined -> false;
        {_, Length} when Length >= ?MAX_QUEUE_LENGTH, element(1, Message) =:= verdict -> {true, {Pid, Form, Missed + 1}};
        _ ->
            _ = Missed > 0 andalso (Pid ! {witness, Ref, {missed, Missed}}),
            Pid ! {witness, Ref, Form(Message)},
            {true, {Pid, Form, 0}}
    end.
