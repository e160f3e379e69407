-module(witness_bench_rows).
-moduledoc """
Writes the rows of a CSV file in a process of its own, so that no other process waits for the disk. Errors are
reported when the file is closed.
""".

-export([start_link/2, row/2, close/1]).

-export_type([rows/0]).

-doc "The process that writes, or `none`.".
-opaque rows() :: pid() | none.

-doc "Creates or overwrites a file. The first row has the names of the columns.".
-spec start_link(none | file:name_all(), Columns :: [iodata()]) -> {ok, rows()} | {error, file:posix() | badarg}.
start_link(none, _) -> {ok, none};
start_link(File, Columns) ->
    Self = self(),
    Ref = make_ref(),
    Pid = spawn_link(fun() ->
        case file:open(File, [write, raw, {delayed_write, 65536, 2000}]) of
            {ok, Device} ->
                Self ! {Ref, ok},
                write(Device, file:write(Device, line(Columns)));
            {error, _} = Error ->
                Self ! {Ref, Error}
        end
    end),
    receive
        {Ref, ok} -> {ok, Pid};
        {Ref, {error, _} = Error} -> Error
    end.

-doc "Adds a row. Returns at once.".
-spec row([number() | iodata()], rows()) -> ok.
row(_, none) -> ok;
row(Values, Rows) ->
    Rows ! {row, Values},
    ok.

-doc "Closes the file. Returns whether the rows are in it, or the error.".
-spec close(rows()) -> ok | {error, file:posix() | badarg | terminated}.
close(none) -> ok;
close(Rows) ->
    Ref = monitor(process, Rows),
    Rows ! {close, self(), Ref},
    receive
        {Ref, Result} -> demonitor(Ref, [flush]), unlink(Rows), Result;
        {'DOWN', Ref, process, _, _} -> {error, terminated}
    end.

%% The first error is kept. A delayed write reports its error later.
write(Device, Result) ->
    receive
        {row, Values} when Result =:= ok -> write(Device, file:write(Device, line(Values)));
        {row, _} -> write(Device, Result);
        {close, From, Ref} -> From ! {Ref, first_error(Result, file:close(Device))}
    end.

first_error(ok, Closed) -> Closed;
first_error({error, _} = Error, _) -> Error.

line(Values) -> [lists:join($,, [value(V) || V <- Values]), $\n].

value(V) when is_integer(V) -> integer_to_binary(V);
value(V) when is_float(V) -> float_to_binary(V, [{decimals, 3}, compact]);
value(V) -> V.
