-module(witness_trace_feed).
-moduledoc """
Reads a log in parallel with the process that uses it: one process reads, others parse.

The consumer is the process that starts the feed. It asks for blocks (`request/2`), and for each gets one message
`{witness_feed, Number, What}`. Numbers count from 1 in the order of the log. Messages may overtake each other, since
blocks are parsed in parallel.

The feed is linked to its consumer and ends with it.
""".

-export([progress/0, start_link/2, request/2, stop/1, read/1]).
-export([init/3, parse/3]).

-export_type([options/0, feed/0, progress/0, what/0]).

-doc """
Where the log is, and how it is read (`witness_log_reader:open/2`, `witness_log:parser/1`). Without `format` the file's name
decides, or its first bytes. `parsers`: so many blocks are parsed in parallel. For a recording (`m:witness_trace_recording`)
only `max_atoms` and `signatures` count. `clock`: of a followed log, what time it is where nothing waits to be read. `events`: events
that another module reads or makes, of the recording in this folder.
""".
-type options() :: #{input := {file, file:name_all()} | standard_input | {recording, file:name_all()}
                              | {events, file:name_all(), witness_trace_recording:events()}, format => witness_log:format(),
                     parsers := pos_integer(), follow => boolean(), clock => boolean(), block => pos_integer(),
                     max_line => pos_integer(), max_atoms => pos_integer(), signatures => [witness_event_wrapper:row()],
                     skip_malformed => boolean(), position => witness_log_reader:position()}.

-opaque feed() :: pid().

-doc "How far reading has come.".
-opaque progress() :: atomics:atomics_ref().

-doc """
What comes: a block with its place; a line that is too long (`long`) or bytes that are `lost`, each of which counts as one
message; `idle`, if there is nothing more to read at the moment; and at last `eof` or an error for people. `idle` does not
count as one of the messages that were asked for; it comes once before each pause. Neither does `clock`: when that system time was read, in
nanoseconds, all lines that were there before had been given. The block of a recording also has `places`.
""".
-type what() :: {block, witness_log:parsed(), witness_log_reader:position()}
              | {block, #{places := tuple(), _ => _}, #{lines := non_neg_integer()}}
              | {long, Bytes :: pos_integer(), witness_log_reader:position()}
              | {lost, Reason :: atom()} | idle | {clock, integer()} | eof | {error, unicode:chardata()}.

%% Milliseconds between two reads of a followed file that has nothing new.
-define(POLL_MS, 50).
%% Words: the size of a parsed block.
-define(PARSER_HEAP_WORDS, 500_000).

-record(feed, {reader :: witness_log_reader:reader(),
               consumer :: pid(),
               options :: options(),
               parsers = [] :: [pid()],
               progress :: progress(),
               wanted = 0 :: non_neg_integer(),
               idle = false :: boolean(),
               number = 1 :: pos_integer()}).

-doc "Nothing was read.".
-spec progress() -> progress().
progress() -> atomics:new(2, []).

-doc "Opens the log. Errors are text for people.".
-spec start_link(options(), progress()) -> {ok, feed()} | {error, unicode:chardata()}.
start_link(Options, Progress) ->
    %% Blocks that were passed on are garbage here, and take much more than the rest of this process.
    {Pid, Ref} = spawn_opt(?MODULE, init, [self(), Options, Progress], [link, monitor, {fullsweep_after, 0}]),
    receive
        {Pid, opened} -> demonitor(Ref, [flush]), {ok, Pid};
        {Pid, refused, Text} -> demonitor(Ref, [flush]), {error, Text};
        {'DOWN', Ref, process, Pid, Reason} -> exit(Reason)
    end.

-doc "Asks for so many further blocks.".
-spec request(feed(), pos_integer()) -> ok.
request(Pid, Count) -> Pid ! {more, Count}, ok.

-doc "Ends the feed. Only messages that are on their way still come.".
-spec stop(feed()) -> ok.
stop(Pid) ->
    unlink(Pid),
    exit(Pid, kill),
    ok.

-doc "How many bytes of the log were read, and how many it has, if that is known.".
-spec read(progress()) -> {non_neg_integer(), pos_integer() | unknown}.
read(Progress) ->
    case {atomics:get(Progress, 1), atomics:get(Progress, 2)} of
        {Read, 0} -> {Read, unknown};
        Known -> Known
    end.

-doc false.
-spec init(pid(), options(), progress()) -> ok.
init(Consumer, Options = #{input := {recording, Dir}}, _) ->
    proc_lib:set_label(witness_feed),
    case witness_trace_recording:open(Dir, Options) of
        {ok, Recording} ->
            Consumer ! {self(), opened},
            witness_trace_recording:run(Dir, fun(Fun, Acc) -> witness_trace_recording:fold(Fun, Acc, Recording) end, Consumer);
        {error, Text} ->
            Consumer ! {self(), refused, Text},
            ok
    end;
init(Consumer, #{input := {events, Dir, Events}}, _) ->
    proc_lib:set_label(witness_feed),
    Consumer ! {self(), opened},
    witness_trace_recording:run(Dir, Events, Consumer);
init(Consumer, Options = #{input := Input}, Progress) ->
    proc_lib:set_label(witness_feed),
    case witness_log_reader:open(Input, maps:with([follow, block, max_line, position], Options)) of
        {ok, Reader} ->
            Consumer ! {self(), opened},
            loop(#feed{reader = Reader, consumer = Consumer, options = Options, progress = Progress});
        {error, {Module, Reason}} ->
            Consumer ! {self(), refused, Module:format_error(Reason)},
            ok
    end.

loop(F = #feed{wanted = 0}) ->
    receive
        {more, Count} -> loop(F#feed{wanted = Count});
        {system, From, Request} -> witness_event_process:system(Request, From, fun loop/1, F)
    end;
loop(F = #feed{reader = Reader}) ->
    Time = os:system_time(nanosecond),
    case witness_log_reader:read(Reader) of
        {block, Block, Position, Reader1} ->
            loop(dispatch_block(Block, Position, put_progress(F#feed{reader = Reader1, idle = false})));
        {long, Bytes, Position, Reader1} -> loop(send_counted({long, Bytes, Position}, F#feed{reader = Reader1}));
        {lost, Reason, Reader1} -> loop(send_counted({lost, Reason}, F#feed{reader = Reader1}));
        {wait, Reader1} -> pause(send_clock(Time, send_idle(put_progress(F#feed{reader = Reader1}))));
        {eof, _} -> send(eof, F);
        {error, {Module, Reason}, _} -> send({error, Module:format_error(Reason)}, F)
    end.

%% The rest of a line that was begun may be a time before this one.
send_clock(Time, F = #feed{options = #{clock := true}, reader = Reader, number = Number}) ->
    case witness_log_reader:is_between_lines(Reader) of
        true ->
            send({clock, Time}, F),
            F#feed{number = Number + 1};
        false -> F
    end;
send_clock(_, F) -> F.

send_idle(F = #feed{idle = true}) -> F;
send_idle(F = #feed{number = Number}) ->
    send(idle, F),
    F#feed{idle = true, number = Number + 1}.

pause(F = #feed{wanted = Wanted}) ->
    receive
        {more, Count} -> loop(F#feed{wanted = Wanted + Count});
        {system, From, Request} -> witness_event_process:system(Request, From, fun pause/1, F)
    after ?POLL_MS -> loop(F)
    end.

dispatch_block(Block, Position, F = #feed{parsers = []}) ->
    dispatch_block(Block, Position, F#feed{parsers = start_parsers(Block, F)});
dispatch_block(Block, Position, F = #feed{parsers = [Parser | Parsers], number = Number, wanted = Wanted}) ->
    Parser ! {parse, Number, Block, Position},
    F#feed{parsers = Parsers ++ [Parser], number = Number + 1, wanted = Wanted - 1}.

start_parsers(Block, #feed{options = Options = #{input := Input, parsers := Count}, consumer = Consumer}) ->
    Format = case Options of
        #{format := Given} -> Given;
        #{} -> format(Input, Block)
    end,
    Parser = witness_log:parser((maps:with([max_atoms, skip_malformed], Options))#{format => Format}),
    [spawn_opt(?MODULE, parse, [self(), Parser, Consumer], [link, {min_heap_size, ?PARSER_HEAP_WORDS}, {fullsweep_after, 0}])
     || _ <- lists:seq(1, Count)].

format({file, File}, Block) ->
    case witness_log:format_of(File) of
        {ok, Format} -> Format;
        unknown -> witness_log:guess(Block)
    end;
format(standard_input, Block) -> witness_log:guess(Block).

send_counted(What, F = #feed{wanted = Wanted, number = Number}) ->
    send(What, F),
    F#feed{number = Number + 1, wanted = Wanted - 1}.

send(What, #feed{consumer = Consumer, number = Number}) ->
    Consumer ! {witness_feed, Number, What},
    ok.

put_progress(F = #feed{reader = Reader, progress = Progress}) ->
    {Read, Total} = witness_log_reader:progress(Reader),
    ok = atomics:put(Progress, 1, Read),
    _ = is_integer(Total) andalso atomics:put(Progress, 2, Total),
    F.

-doc false.
-spec parse(pid(), witness_log:parser(), Consumer :: pid()) -> no_return().
parse(Feed, Parser, Consumer) ->
    proc_lib:set_label(witness_log_parser),
    Ref = monitor(process, Feed),
    parse_loop({Ref, Parser, Consumer}).

-spec parse_loop({reference(), witness_log:parser(), pid()}) -> no_return().
parse_loop({Ref, Parser, Consumer} = P) ->
    receive
        {parse, Number, Block, Position} ->
            Consumer ! {witness_feed, Number, {block, witness_log:parse(Block, Parser), Position}},
            parse_loop(P);
        {'DOWN', Ref, process, _, Reason} -> exit(Reason);
        {system, From, Request} -> witness_event_process:system(Request, From, fun parse_loop/1, P)
    end.
