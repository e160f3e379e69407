-module(witness_remote_guard).
-moduledoc """
The part of an attachment that runs at the target: starts the run, owns it, and reports its results to the tool.

No backlog can grow here. Each kind of verdict has a window: so many of this kind may be unread by the tool. A verdict beyond the
window is counted by its kind, and for an undecided one by its reason. The counts are sent with the summary, which counts every
verdict and is always sent. Since the windows are separate, no satisfied verdict takes the place of a violation or of an undecided
one. A satisfied verdict is sent only if the connection takes it at once, and not at all if the tool only counts them
(`satisfied`); for the others the guard waits until the connection takes them.

When the guard ends, however it ends, its cleaner removes all that was loaded (`m:witness_remote_cleaner`). The guard ends with
its run, and with its cleaner.
""".

-export([init/3]).

-export_type([config/0, missed/0]).

-doc """
The input from the tool: its process, the tag of all messages, the options of the run as a user gives them, the compiled
specifications, and the modules, by the names that they have here.
""".
-type config() :: #{tool := pid(), tag := reference(), options := map(),
                    specs := [map()], modules := [module()]}.

-doc """
How many verdicts of each kind were not sent, and of the undecided ones the reasons: those of monitors, and those of slices, which
the summary lists already.
""".
-type missed() :: #{verdicts := #{witness_monitor:verdict() => non_neg_integer()},
                    reasons := [{{monitor | slice, witness_run_maps:key(), Reason :: term()}, pos_integer()}]}.

%% Windows: verdicts of a kind on their way to the tool, or not printed there yet.
-define(MAX_UNREAD_SATISFIED, 256).
-define(MAX_UNREAD, 1000).
%% Reasons that are counted separately.
-define(MAX_REASONS, 100).

%% unread, missed: a counter for each kind of verdict; reasons: of those that were missed
-record(windows, {unread = atomics:new(3, []) :: atomics:atomics_ref(),
                  missed = atomics:new(3, []) :: atomics:atomics_ref(),
                  reasons = ets:new(witness_remote_missed, [public]) :: ets:table(),
                  satisfied :: told | counted}).

-record(guard, {watch :: reference(),
                tool :: pid(),
                tag :: reference(),
                run :: pid(),
                redact :: boolean(),
                windows :: #windows{},
                requests :: gen_server:request_id_collection()}).

-doc false.
-spec init(Cleaner :: pid(), Spare :: pid(), config()) -> ok.
init(Cleaner, Spare, #{tool := Tool, tag := Tag, options := Given, specs := Specs, modules := Modules}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_remote_guard),
    Watch = monitor(process, Cleaner),
    Windows = #windows{satisfied = maps:get(satisfied, Given, told)},
    Self = self(),
    Options = Given#{source => evm, log => false, max_verdicts => 0, unobserved => [Cleaner, Spare],
                     on_verdict => fun(Verdict) -> report_verdict(Verdict, Self, Windows) end},
    maybe
        {ok, Checked} ?= witness_options:check(Options),
        {ok, Run} ?= witness_run:start(Checked#{specs := Specs, modules => Modules}),
        ok ?= witness_run:await_begin(Run),
        Tool ! {Tag, running, witness_run:info(Run)},
        Requests = gen_server:reqids_add(gen_server:send_request(Run, await), await, gen_server:reqids_new()),
        loop(#guard{watch = Watch, tool = Tool, tag = Tag, run = Run, redact = maps:get(redact, Checked),
                    windows = Windows, requests = Requests})
    else
        {error, Reason} -> report_refusal(Reason, Tool, Tag)
    end.

report_refusal(Reason, Tool, Tag) ->
    Tool ! {Tag, refused, Reason},
    ok.

%% The run calls it, one verdict at a time.
report_verdict(#{verdict := yes}, _, #windows{satisfied = counted}) -> ok;
report_verdict(Verdict = #{verdict := Kind}, Guard, Windows = #windows{unread = Unread}) ->
    case atomics:add_get(Unread, index(Kind), 1) =< max_unread(Kind) of
        true -> Guard ! {verdict, Verdict};
        false -> count_missed(Verdict, Windows)
    end.

count_missed(Verdict = #{verdict := Kind}, #windows{unread = Unread, missed = Missed, reasons = Reasons}) ->
    atomics:sub(Unread, index(Kind), 1),
    atomics:add(Missed, index(Kind), 1),
    _ = Kind =:= inconclusive andalso count_reason(Verdict, Reasons),
    ok.

count_reason(Verdict = #{reason := Reason, slice := Slice}, Reasons) ->
    Of = {case Slice of undefined -> monitor; _ -> slice end, witness_run_maps:key(Verdict)},
    Key = erlang:append_element(Of, Reason),
    Counted = case ets:member(Reasons, Key) orelse ets:info(Reasons, size) < ?MAX_REASONS of
        true -> Key;
        false -> erlang:append_element(Of, {crashed, various})
    end,
    ets:update_counter(Reasons, Counted, 1, {Counted, 0}).

index(no) -> 1;
index(yes) -> 2;
index(inconclusive) -> 3.

max_unread(yes) -> ?MAX_UNREAD_SATISFIED;
max_unread(_) -> ?MAX_UNREAD.

missed(#windows{missed = Missed, reasons = Reasons}) ->
    #{verdicts => #{Kind => atomics:get(Missed, index(Kind)) || Kind <- [no, yes, inconclusive]}, reasons => ets:tab2list(Reasons)}.

%% It may be suspended here until the connection takes the verdict, or is lost.
send_verdict(Verdict = #{verdict := yes}, #guard{tool = Tool, tag = Tag, windows = Windows}) ->
    _ = erlang:send(Tool, {Tag, verdict, Verdict}, [nosuspend, noconnect]) =:= ok orelse count_missed(Verdict, Windows),
    ok;
send_verdict(Verdict, #guard{tool = Tool, tag = Tag}) ->
    _ = erlang:send(Tool, {Tag, verdict, Verdict}, [noconnect]),
    ok.

loop(G = #guard{watch = Watch, tool = Tool, tag = Tag, run = Run, windows = #windows{unread = Unread}, requests = Requests}) ->
    receive
        {verdict, Verdict} ->
            ok = send_verdict(Verdict, G),
            loop(G);
        {Tag, read, Kind} ->
            atomics:sub(Unread, index(Kind), 1),
            loop(G);
        {Tag, stop} ->
            loop(G#guard{requests = gen_server:reqids_add(gen_server:send_request(Run, stop), stop, Requests)});
        {Tag, info, Asked} ->
            Request = gen_server:send_request(Run, info),
            loop(G#guard{requests = gen_server:reqids_add(Request, {info, Asked}, Requests)});
        {'DOWN', Watch, process, _, _} -> exit(shutdown);
        Message ->
            case gen_server:check_response(Message, Requests, true) of
                {{reply, Info}, {info, Asked}, Others} ->
                    Tool ! {Tag, info, Asked, Info},
                    loop(G#guard{requests = Others});
                {{reply, {ok, Summary}}, _, _} -> finish(Summary, G);
                {{error, {Reason, _}}, _, _} -> exit({run_died, redact(Reason, G)});
                _ -> loop(G)
            end
    end.

%% The run redacts everything else that the guard sends.
redact(Reason, #guard{redact = true}) -> witness_event_redact:term(Reason);
redact(Reason, _) -> Reason.

%% Earlier verdicts are in the mailbox.
finish(Summary, G = #guard{tool = Tool, tag = Tag, run = Run, windows = Windows}) ->
    receive
        {verdict, Verdict} ->
            ok = send_verdict(Verdict, G),
            finish(Summary, G)
    after 0 ->
        _ = witness_run:stop(Run),
        Tool ! {Tag, summary, Summary, missed(Windows)},
        ok
    end.
