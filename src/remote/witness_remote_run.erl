-module(witness_remote_run).
-moduledoc """
The tool's side of an attachment: a process with the functions of a run (`witness:await/2`, `stop/1`,
`info/1`), which calls the guard at the target (`m:witness_remote_guard`).

It ends the attachment. While it is alive and the connection holds, another process renews the lease of the cleaner
(`m:witness_remote_cleaner`). At the end it waits for the summary, and until the cleaner has left the
target as it was. If the connection is lost first, the result is what was reported until then, which cannot be trusted.
""".
-behaviour(gen_server).

-export([start/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([config/0]).

-doc """
An attachment. `objects` still have their own names; `names` are those of all modules that they were made of; calls of
`absent` modules fail; `warnings` are those about the specifications. `on_leaving` is given lines about the progress of the
clean-up. `lease`: milliseconds without a message from here, after which the target cleans up.
""".
-type config() :: #{node := node(), objects := [witness_remote_bundle:object()], names := [module()],
                    absent := [module()], options := map(),
                    specs := [witness_spec:instrumentation_map()],
                    on_leaving := fun((unicode:chardata()) -> term()),
                    on_verdict := fun((witness:verdict()) -> term()), warnings := [witness:warning()],
                    lease := pos_integer(), owner := pid()}.

%% Milliseconds that the set-up may take at the target, in total.
-define(SETUP_TIMEOUT_MS, 60_000).
%% With fewer processes than this the target is clean at once, and no progress is reported.
-define(MIN_PROCESSES, 10_000).

-record(attachment, {config :: config(),
                     tag :: reference(),
                     slot :: witness_remote_cleaner:slot(),
                     names :: witness_remote_bundle:renaming(),    % from names in the slot to original names
                     cleaner :: pid(),
                     watch :: reference(),
                     guard :: undefined | pid(),
                     info = #{} :: map(),
                     info_called = false :: boolean(),
                     verdicts = #{no => 0, yes => 0, inconclusive => 0} :: map(),
                     summary :: undefined | witness:summary(),
                     broken :: undefined | term(),     % why the target will send no summary
                     is_done = false :: boolean(),
                     requests = #{} :: #{reference() => gen_server:from()},
                     awaiting = [] :: [gen_server:from()],
                     stopping = [] :: [gen_server:from()],
                     started = erlang:monotonic_time(millisecond) :: integer()}).

-doc "Attaches.".
-spec start(config()) -> {ok, pid()} | {error, witness:error()}.
start(Config) ->
    case gen_server:start(?MODULE, Config, [{timeout, infinity}]) of
        {ok, Run} -> {ok, Run};
        {error, {shutdown, Error}} -> {error, Error};
        {error, Reason} -> {error, {witness_run, {not_started, Reason}}}
    end.

-doc false.
-spec init(config()) -> {ok, #attachment{}} | {stop, {shutdown, witness:error()}}.
init(Config = #{owner := Owner}) ->
    proc_lib:set_label(witness_remote_run),
    monitor(process, Owner),
    Tag = make_ref(),
    case claim(witness_remote_cleaner:slots(), Tag, Config) of
        {ok, A} -> load(A);
        {error, Error} -> {stop, {shutdown, Error}}
    end.

claim([], _, #{node := Node}) ->
    {error, {witness_remote, {remote, ["too many tools are attached to ", atom_to_binary(Node), " at the same time"]}}};
claim([Slot | Slots], Tag, Config = #{node := Node, names := Modules, lease := Lease}) ->
    Named = witness_remote_cleaner:name_in_slot(Slot),
    Names = #{Named(M) => M || M <- Modules},
    Cleaner = witness_remote_cleaner:claim(Node, Slot, {Tag, Lease}, maps:keys(Names)),
    Watch = monitor(process, Cleaner),
    receive
        {Tag, claimed, Cleaner} ->
            Self = self(),
            _ = spawn_link(fun() -> renew(Self, Cleaner, Tag, max(1, Lease div 5)) end),
            {ok, #attachment{config = Config, tag = Tag, slot = Slot, names = Names, cleaner = Cleaner, watch = Watch}};
        {Tag, taken} ->
            demonitor(Watch, [flush]),
            claim(Slots, Tag, Config);
        {'DOWN', Watch, process, _, Reason} -> {error, lost(lost_text(Reason, Config))}
    after ?SETUP_TIMEOUT_MS -> {error, lost(slow_text(Config))}
    end.

%% Printing may block this attachment for any time, so another process renews the lease.
-spec renew(pid(), pid(), reference(), pos_integer()) -> no_return().
renew(Attachment, Cleaner, Tag, Pause) ->
    receive after Pause -> ok end,
    _ = erlang:send(Cleaner, {Tag, alive}, [nosuspend, noconnect]),
    renew(Attachment, Cleaner, Tag, Pause).

load(A = #attachment{config = Config, tag = Tag, cleaner = Cleaner, watch = Watch, slot = Slot, names = Names}) ->
    #{objects := Objects, absent := Absent, options := Options, specs := Specs} = Config,
    Named = witness_remote_cleaner:name_in_slot(Slot),
    Renaming = #{M => Named(M) || M <- maps:values(Names) ++ Absent},
    Given = #{tool => self(), tag => Tag, options => Options, modules => maps:keys(Names),
              specs => [Map#{module := Named(Module)} || #{module := Module} = Map <- Specs]},
    Cleaner ! {Tag, load, witness_remote_bundle:rename(Objects, Renaming),
               {Named(witness_remote_guard), init, [Given]}},
    receive
        {Tag, started, Pid} -> await_running(A#attachment{guard = Pid});
        {Tag, not_loaded, Reason} ->
            await_clean({witness_remote, {remote, ["its code server refuses the modules of Witness: ",
                                                   witness_event:format_term(Reason, 400)]}}, A);
        {'DOWN', Watch, process, _, Reason} -> {stop, {shutdown, lost(lost_text(Reason, Config))}}
    after ?SETUP_TIMEOUT_MS -> {stop, {shutdown, lost(slow_text(Config))}}
    end.

await_running(A = #attachment{config = Config, tag = Tag, watch = Watch}) ->
    receive
        {Tag, running, Info} -> {ok, A#attachment{info = to_local(Info, A)}};
        {Tag, refused, Reason} -> await_clean(refusal(to_local(Reason, A)), A);
        {Tag, over, Why} -> await_clean(lost(over_text(Why, A)), A);
        {'DOWN', Watch, process, _, Reason} -> {stop, {shutdown, lost(lost_text(Reason, Config))}}
    after ?SETUP_TIMEOUT_MS -> {stop, {shutdown, lost(slow_text(Config))}}
    end.

refusal(Reason) ->
    case witness_error:check(Reason) of
        {ok, Error} -> Error;
        error -> {witness_remote, {remote, ["the target refuses the run: ", witness_event:format_term(Reason, 400)]}}
    end.

%% The error is returned when nothing is left at the target.
await_clean(Error, #attachment{watch = Watch}) ->
    receive {'DOWN', Watch, process, _, _} -> ok after ?SETUP_TIMEOUT_MS -> ok end,
    {stop, {shutdown, Error}}.

lost(Text) -> {witness_remote, {lost, Text}}.

lost_text(noproc, Config) -> lost_text(noconnection, Config);
lost_text(noconnection, #{node := Node}) ->
    ["the connection to ", atom_to_binary(Node), " was lost; it removes what was loaded by itself"];
lost_text(normal, #{node := Node}) -> ["the attachment to ", atom_to_binary(Node), " was ended there"];
lost_text(Reason, #{node := Node}) ->
    ["what watches the attachment at ", atom_to_binary(Node), " has ended: ", witness_event:format_term(Reason, 400)].

over_text(lease, _) -> "the target has heard nothing of this tool for too long, and has ended the attachment";
over_text({guard, Reason}, A) -> ["the run at the target has ended: ", witness_event:format_term(to_local(Reason, A), 400)];
over_text(Why, _) -> ["the attachment was ended at the target: ", witness_event:format_term(Why, 100)].

slow_text(#{node := Node}) -> ["the node ", atom_to_binary(Node), " takes too long; it removes what was loaded by itself"].

-doc false.
-spec handle_call(term(), gen_server:from(), #attachment{}) ->
    {noreply, #attachment{}} | {reply, term(), #attachment{}} | {stop, normal, term(), #attachment{}}.
handle_call(await, _, A = #attachment{is_done = true, summary = Summary}) ->
    {reply, {ok, Summary}, A};
handle_call(await, From, A = #attachment{awaiting = Awaiting}) ->
    {noreply, A#attachment{awaiting = [From | Awaiting]}};
handle_call(stop, _, A = #attachment{is_done = true, summary = Summary}) ->
    {stop, normal, {ok, Summary}, A};
handle_call(stop, From, A = #attachment{tag = Tag, guard = Guard, stopping = Stopping}) ->
    Guard ! {Tag, stop},
    {noreply, A#attachment{stopping = [From | Stopping]}};
handle_call(info, From, A = #attachment{tag = Tag, guard = Guard, is_done = false, info_called = true, requests = Requests}) ->
    Ref = make_ref(),
    Guard ! {Tag, info, Ref},
    {noreply, A#attachment{requests = Requests#{Ref => From}}};
handle_call(info, _, A = #attachment{info = Info}) ->
    %% `info' was not called yet, so its answer is still that from the start of the run.
    {reply, add_warnings(Info, A), A#attachment{info_called = true}}.

add_warnings(Result = #{warnings := Warnings}, #attachment{config = #{warnings := Own}}) ->
    Result#{warnings := Own ++ Warnings}.

-doc false.
-spec handle_cast(term(), #attachment{}) -> {noreply, #attachment{}}.
handle_cast(_, A) -> {noreply, A}.

-doc false.
-spec handle_info(term(), #attachment{}) -> {noreply, #attachment{}} | {stop, normal | shutdown, #attachment{}}.
handle_info({Tag, verdict, Verdict}, A = #attachment{tag = Tag, guard = Guard, verdicts = Counts}) ->
    V = #{verdict := Kind} = to_local(Verdict, A),
    notify(V, A),
    Guard ! {Tag, read, Kind},
    {noreply, A#attachment{verdicts = maps:update_with(Kind, fun(N) -> N + 1 end, Counts)}};
handle_info({Tag, info, Ref, Info}, A = #attachment{tag = Tag, requests = Requests}) ->
    {From, Others} = maps:take(Ref, Requests),
    gen_server:reply(From, add_warnings(to_local(Info, A), A)),
    {noreply, A#attachment{requests = Others}};
handle_info({Tag, summary, Summary, Missed}, A = #attachment{tag = Tag}) ->
    Whole = #{warnings := Warnings} = add_warnings(to_local(Summary, A), A),
    #{verdicts := Verdicts, reasons := Reasons} = to_local(Missed, A),
    {noreply, A#attachment{summary = add_reasons(Reasons, Whole#{warnings := Warnings ++ missed_warnings(Verdicts)})}};
handle_info({Tag, leaving, N, Of, Processes}, A = #attachment{tag = Tag, config = #{node := Node, on_leaving := OnLeaving}}) ->
    _ = Processes >= ?MIN_PROCESSES andalso
        OnLeaving(io_lib:format("leaving ~ts: each of its ~w processes is asked whether it runs code of Witness (module ~w of ~w)",
                                [Node, Processes, N, Of])),
    {noreply, A};
handle_info({Tag, over, Why}, A = #attachment{tag = Tag, broken = undefined}) ->
    {noreply, A#attachment{broken = over_text(Why, A)}};
handle_info({'DOWN', Watch, process, _, Reason}, A = #attachment{watch = Watch}) ->
    handle_end(Reason, A);
handle_info({'DOWN', _, process, _, _}, A) ->
    {stop, shutdown, A};
handle_info(_, A) ->
    {noreply, A}.

missed_warnings(Missed) ->
    [#{code => verdicts_missed, text => text(witness_run_warnings:format_missed(Missed))} || lists:sum(maps:values(Missed)) > 0].

%% The reasons of undecided verdicts that were not sent. Slices are in the list already, as if each had been sent.
add_reasons(Reasons, Summary) ->
    Undecided = lists:foldl(fun add_reason/2, maps:get(undecided, Summary, []), Reasons),
    Summary#{undecided => Undecided}.

add_reason({{Of, {Spec, Name, Version}, Reason}, N}, Undecided) ->
    New = #{spec => Spec, name => Name, version => Version, reason => Reason, count => N, told => 0},
    case lists:partition(fun(U) -> maps:without([count, told], U) =:= maps:without([count, told], New) end, Undecided) of
        {[#{told := Told} = U], Others} when Of =:= slice -> Others ++ [U#{told := max(0, Told - N)}];
        {[#{count := Count} = U], Others} -> Others ++ [U#{count := Count + N}];
        {[], _} -> Undecided ++ [New]
    end.

notify(Verdict, #attachment{config = #{on_verdict := OnVerdict}}) -> witness_run_notifier:call_back(OnVerdict, Verdict).

to_local(Term, #attachment{config = #{node := Node}, names = Names}) -> witness_remote_view:to_local(Term, Node, Names).

%% --- the end ---------------------------------------------------------------------

%% The cleaner has ended, or the connection to it is lost.
handle_end(normal, A = #attachment{summary = Summary}) when Summary =/= undefined -> reply_all(A);
handle_end(Reason, A = #attachment{config = Config, summary = undefined, broken = Broken}) ->
    Text = case Broken of undefined -> lost_text(Reason, Config); _ -> Broken end,
    reply_all(A#attachment{summary = lost_summary(Text, A)});
handle_end(Reason, A = #attachment{config = Config, summary = Summary = #{warnings := Warnings}}) ->
    Warning = #{code => not_cleaned, text => text(lost_text(Reason, Config))},
    reply_all(A#attachment{summary = Summary#{warnings := Warnings ++ [Warning]}}).

reply_all(A = #attachment{summary = Summary, awaiting = Awaiting, stopping = Stopping, requests = Requests, info = Info}) ->
    lists:foreach(fun(From) -> gen_server:reply(From, {ok, Summary}) end, Awaiting ++ Stopping),
    lists:foreach(fun(From) -> gen_server:reply(From, add_warnings(Info, A)) end, maps:values(Requests)),
    A1 = A#attachment{is_done = true, awaiting = [], stopping = [], requests = #{}},
    case Stopping of
        [] -> {noreply, A1};
        _ -> {stop, normal, A1}
    end.

%% The summary of a run with an end that was not seen here.
lost_summary(Text, #attachment{config = #{warnings := Warnings}, verdicts = Verdicts = #{no := No}, started = Started}) ->
    #{processes => 0, tracers => 1, events => 0, verdicts => Verdicts, vacuous => 0, gaps => 0, slices => 0,
      monitored => lists:sum(maps:values(Verdicts)), coverage => [],
      warnings => Warnings ++ [#{code => connection_lost, text => text(Text)}],
      elapsed_ms => erlang:monotonic_time(millisecond) - Started,
      outcome => case No of 0 -> untrusted; _ -> violated end, refused => undefined, system => undefined}.

text(Chars) -> unicode:characters_to_binary(Chars).
