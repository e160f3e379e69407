-module(witness_cli_io).
-moduledoc """
Where the output of the command line goes.

Results go to standard output, everything else (errors, progress, log reports) to standard error. With `--json`
standard output belongs to the JSON lines alone, whatever the system under observation prints: `bin/witness` starts the
VM with its standard output joined to standard error, and hands the real one over as another file descriptor, whose
number the flag `-witness_out` gives. Without the flag JSON goes to the VM's standard output.

When the reader of standard output goes away (`| head`), the owner of the output, which is the process that called
`open/1`, gets the message `output_closed`, once or several times, and what is printed afterwards is lost.
""".

-export([prepare/0, open/1, print/2, note/1, look/0, terminal/1]).

-export_type([out/0]).

-doc "Standard output.".
-type out() :: #{owner := pid(), device := port() | user}.

-define(WIDTH, 100).

-doc "Makes the log go to standard error, and all output Unicode.".
-spec prepare() -> ok.
prepare() ->
    _ = io:setopts(user, [{encoding, unicode}]),
    _ = io:setopts(standard_error, [{encoding, unicode}]),
    case logger:get_handler_config(default) of
        {ok, #{module := logger_std_h} = Handler} ->
            ok = logger:remove_handler(default),
            Kept = maps:with([level, filters, filter_default, formatter], Handler),
            ok = logger:add_handler(default, logger_std_h, Kept#{config => #{type => standard_error}});
        _ -> ok
    end.

-doc "Standard output for text or for JSON. Traps exits of the caller, which is its owner.".
-spec open(text | json) -> out().
open(text) -> #{owner => self(), device => user};
open(json) ->
    case init:get_argument(witness_out) of
        {ok, [[Number]]} ->
            process_flag(trap_exit, true),
            Descriptor = list_to_integer(Number),
            #{owner => self(), device => open_port({fd, Descriptor, Descriptor}, [out, binary])};
        _ -> open(text)
    end.

-doc "Prints; waits where the reader is slow.".
-spec print(out(), unicode:chardata()) -> ok.
print(#{device := user, owner := Owner}, Text) ->
    try
        io:put_chars(user, Text)
    catch
        error:_ -> closed(Owner)
    end;
print(#{device := Port, owner := Owner}, Text) ->
    try
        true = port_command(Port, unicode:characters_to_binary(Text)),
        ok
    catch
        error:_ -> closed(Owner)
    end.

closed(Owner) ->
    Owner ! output_closed,
    ok.

-doc "Prints to standard error.".
-spec note(unicode:chardata()) -> ok.
note(Text) ->
    try
        io:put_chars(standard_error, Text)
    catch
        error:_ -> ok
    end.

-doc "How text looks on standard output: in colours on a terminal, unless NO_COLOR is set.".
-spec look() -> witness_text:look().
look() ->
    #{colour => terminal(stdout) andalso os:getenv("NO_COLOR", "") =:= "", width => width()}.

width() ->
    try
        max(40, list_to_integer(os:getenv("COLUMNS", "")))
    catch
        error:badarg -> ?WIDTH
    end.

-doc "Whether standard output or standard error is a terminal.".
-spec terminal(stdout | stderr) -> boolean().
terminal(Device) ->
    case io:getopts(user) of
        Options when is_list(Options) -> proplists:get_value(Device, Options, false) =:= true;
        _ -> false
    end.
