-module(witness_bench_store).
-moduledoc """
The folder of an experiment; an interrupted experiment continues from it.

```
experiment.json   the file as it was given
platform.json     what it runs on
fit.json          the loading time that was found, where the experiment asks for that
arrivals/L.csv    the arrivals of the shape with label L, where it is a file
results.csv       a row for each benchmark
samples/ID.csv    what was sampled while a benchmark ran
responses/ID.csv  the histogram of its response times
tables.txt        the tables, when all is done
```

Every file is written under a temporary name and renamed, so that each is whole, whenever the tool is killed. A row
is in `results.csv` after the other files of its benchmark are there; a benchmark without a row is run again.

If a file cannot be written, because the disk is full, say, `{unwritten, Problem}` is thrown.
""".

-export([open/4, read/1, platform/1, claim/1, release/1, rows/1, add/3, histogram/2, sampled/2, samples/2, save/3, saved/2]).

-export_type([store/0]).

-doc "An open folder.".
-type store() :: #{folder := file:filename_all(), rows := [witness_bench_result:row()],
                   files => [{Name :: file:filename_all(), iodata()}], claim => port() | none}.

-doc """
Opens the folder for an experiment, with its text and the platform, or to read it on `any` platform; nothing is written yet.
An existing folder must be empty, or have the same experiment, with the same files of arrivals, on the same platform.
""".
-spec open(file:filename_all(), Text :: binary(), witness_bench_experiment:experiment(), Platform :: map() | any) ->
    {ok, store()} | {error, unicode:chardata()}.
open([], _, _, _) -> {error, ~"-o: the name of a folder is expected, not ''"};
open(Folder, Text, #{source := Source, shapes := Shapes}, Platform) ->
    maybe
        ok ?= check_empty(Folder),
        ok ?= same(Folder, "experiment.json", Source,
                   ~"is of another experiment, or this one has changed: name another folder with -o, or remove it"),
        ok ?= same_platform(Folder, Platform),
        {ok, Arrivals} ?= arrivals(Folder, [{Label, File} || {Label, #{~"file" := File}} <- Shapes], []),
        {ok, Rows} ?= read_rows(Folder),
        {ok, #{folder => Folder, rows => Rows,
               files => [{"experiment.json", Text}
                         | [{"platform.json", witness_bench_json:lines(Platform)} || Platform =/= any] ++ Arrivals]}}
    else
        {error, Problem} when is_atom(Problem) -> {error, [Folder, ~": ", file:format_error(Problem)]};
        {error, Problem} -> {error, [Folder, ~": ", Problem]}
    end.

%% Whether the folder was begun on this platform.
same_platform(_, any) -> ok;
same_platform(Folder, Platform) ->
    %% Encoded and decoded, as the file has it.
    Here = json:decode(iolist_to_binary(json:encode(Platform))),
    case platform(#{folder => Folder}) of
        none -> ok;
        {ok, Here} -> ok;
        {ok, There} ->
            Differ = [[Key, ~" ", shown(Key, There), ~" there, ", shown(Key, Here), ~" here"]
                      || Key <- lists:usort(maps:keys(Here) ++ maps:keys(There)),
                         maps:get(Key, Here, null) =/= maps:get(Key, There, null)],
            {error, [~"was begun on another platform (", lists:join(~"; ", Differ), ~"): name another folder with -o"]}
    end.

shown(Key, Platform) -> json:encode(maps:get(Key, Platform, null)).

-doc "Opens the folder of an experiment to read it, with the text of the experiment.".
-spec read(file:filename_all()) -> {ok, store(), Text :: binary()} | {error, unicode:chardata()}.
read(Folder) ->
    maybe
        {ok, Text} ?= file:read_file(filename:join(Folder, "experiment.json")),
        {ok, Rows} ?= read_rows(Folder),
        {ok, #{folder => Folder, rows => Rows}, Text}
    else
        {error, enoent} -> {error, [Folder, ~": holds no experiment of witness bench (experiment.json)"]};
        {error, Problem} when is_atom(Problem) -> {error, [Folder, ~": ", file:format_error(Problem)]};
        {error, Problem} -> {error, [Folder, ~": ", Problem]}
    end.

-doc "The facts about the platform of the folder, by their names.".
-spec platform(#{folder := file:filename_all(), _ => _}) -> {ok, #{binary() => json:decode_value()}} | none.
platform(#{folder := Folder}) ->
    maybe
        {ok, Text} ?= file:read_file(filename:join(Folder, "platform.json")),
        {ok, #{} = Facts} ?= witness_bench_json:decode(Text),
        {ok, Facts}
    else
        {ok, _} -> {ok, #{}};
        {error, enoent} -> none;
        {error, _} -> {ok, #{}}
    end.

%% Each file with its copy in the folder, which the rows refer to.
arrivals(_, [], Files) -> {ok, lists:reverse(Files)};
arrivals(Folder, [{Label, File} | More], Files) ->
    Copy = filename:join("arrivals", <<Label/binary, ".csv">>),
    case {file:read_file(File), file:read_file(filename:join(Folder, Copy))} of
        {{ok, Text}, {ok, Text}} -> arrivals(Folder, More, [{Copy, Text} | Files]);
        {{ok, Text}, {error, enoent}} -> arrivals(Folder, More, [{Copy, Text} | Files]);
        {{ok, _}, {ok, _}} ->
            {error, [File, ~" has changed since (", Copy, ~"): name another folder with -o, or remove it"]};
        {{ok, _}, {error, _} = Error} -> Error;
        {{error, Reason}, _} -> {error, [File, ~": ", file:format_error(Reason)]}
    end.

check_empty(Folder) ->
    case file:list_dir(Folder) of
        {ok, []} -> ok;
        {error, enoent} -> ok;
        {ok, Names} ->
            case lists:member("experiment.json", Names)
                orelse lists:all(fun(Name) -> lists:suffix(".part", Name) end, Names) of
                true -> ok;
                false -> {error, ~"holds something that is no experiment; name another folder with -o"}
            end;
        {error, _} = Error -> Error
    end.

same(Folder, Name, Value, Problem) ->
    case file:read_file(filename:join(Folder, Name)) of
        {ok, Text} ->
            case witness_bench_json:decode(Text) of
                {ok, Value} -> ok;
                _ -> {error, Problem}
            end;
        {error, enoent} -> ok;
        {error, _} = Error -> Error
    end.

read_rows(Folder) ->
    case file:read_file(filename:join(Folder, "results.csv")) of
        {ok, Text} ->
            case witness_bench_result:parse(Text) of
                {ok, Rows} -> {ok, Rows};
                {error, Problem} -> {error, [~"results.csv: ", Problem]}
            end;
        {error, enoent} -> {ok, []};
        {error, _} = Error -> Error
    end.

-doc """
Takes the folder for this process alone, until it ends or calls `release/1`, and removes half-written files of
a tool that was killed. If the system has no abstract socket names (all but Linux), use by another tool is not noticed.
""".
-spec claim(store()) -> {ok, store()} | {error, unicode:chardata()}.
claim(#{folder := Folder} = Store) ->
    maybe
        {ok, Claim} ?= claim_name(Folder, os:type()),
        {Files, Left} = case Store of #{files := Given} -> {Given, maps:remove(files, Store)}; #{} -> {[], Store} end,
        ok ?= prepared(Folder, ["samples", "responses" | ["arrivals" || [_, _ | _] <- [filename:split(N) || {N, _} <- Files]]]),
        lists:foreach(fun({Name, Text}) -> ok = write(Folder, Name, Text) end, Files),
        Torn = filelib:wildcard("{.,samples,responses}/*.part", unicode:characters_to_list(Folder)),
        lists:foreach(fun(Name) -> file:delete(filename:join(Folder, Name)) end, Torn),
        {ok, Rows} ?= read_rows(Folder),
        {ok, Left#{rows := Rows, claim => Claim}}
    else
        {error, Problem} when is_atom(Problem) -> {error, [Folder, ~": ", file:format_error(Problem)]};
        {error, Problem} -> {error, [Folder, ~": ", Problem]}
    end.

prepared(_, []) -> ok;
prepared(Folder, [Name | Names]) ->
    case filelib:ensure_path(filename:join(Folder, Name)) of
        ok -> prepared(Folder, Names);
        {error, _} = Error -> Error
    end.

%% The name ends with the VM, however that ends.
claim_name(Folder, {unix, linux}) ->
    Path = unicode:characters_to_binary(filename:absname(Folder)),
    Name = <<0, "witness-bench-", (binary:encode_hex(erlang:md5(Path)))/binary>>,
    case gen_udp:open(0, [{ifaddr, {local, Name}}]) of
        {ok, Socket} -> {ok, Socket};
        {error, eaddrinuse} -> {error, ~"another run of this experiment uses it now"};
        {error, _} = Error -> Error
    end;
claim_name(_, _) -> {ok, none}.

-doc "Releases the folder.".
-spec release(store()) -> store().
release(#{claim := Claim} = Store) ->
    Claim =:= none orelse gen_udp:close(Claim),
    maps:remove(claim, Store).

-doc "The rows so far, in the order in which they were added; a benchmark that was measured again has several.".
-spec rows(store()) -> [witness_bench_result:row()].
rows(#{rows := Rows}) -> Rows.

-doc "Where the samples of a benchmark are to be written; `add/3` moves them to their place.".
-spec samples(store(), Id :: binary()) -> file:filename_all().
samples(#{folder := Folder}, Id) -> filename:join([Folder, "samples", <<Id/binary, ".csv.part">>]).

-doc "Adds a row, with the histogram of the response times.".
-spec add(store(), witness_bench_result:row(), Histogram :: [[integer()]]) -> store().
add(#{folder := Folder, rows := Rows} = Store, #{id := Id} = Row, Histogram) ->
    Part = samples(Store, Id),
    case filelib:is_regular(Part) of
        true -> ok = written(Part, file:rename(Part, filename:join([Folder, "samples", <<Id/binary, ".csv">>])));
        false -> ok
    end,
    _ = Histogram =:= [] orelse
        (ok = write(Folder, filename:join("responses", <<Id/binary, ".csv">>),
                    [~"low_ns,high_ns,count\n"
                     | [[lists:join($,, [integer_to_binary(N) || N <- Bucket]), $\n] || Bucket <- Histogram]])),
    All = Rows ++ [Row],
    ok = write(Folder, "results.csv", [witness_bench_result:header() | [witness_bench_result:format(R) || R <- All]]),
    Store#{rows := All}.

-doc "The histogram of a benchmark's response times; empty if it has none.".
-spec histogram(store(), Id :: binary()) -> [{Low :: integer(), High :: integer(), Count :: integer()}].
histogram(Store, Id) ->
    case saved(Store, filename:join("responses", <<Id/binary, ".csv">>)) of
        {ok, Text} ->
            [{Low, High, Count} || Line <- tl(binary:split(Text, ~"\n", [global, trim])),
                                   Fields <- [binary:split(Line, ~",", [global])],
                                   [Low, High, Count] <- [[binary_to_integer(Field) || Field <- Fields]]];
        none -> []
    end.

-doc "The samples of a benchmark, by the names of their columns; empty if it has none.".
-spec sampled(store(), Id :: binary()) -> [#{binary() => binary()}].
sampled(Store, Id) ->
    case saved(Store, filename:join("samples", <<Id/binary, ".csv">>)) of
        {ok, Text} ->
            [Names | Rows] = [binary:split(Line, ~",", [global]) || Line <- binary:split(Text, ~"\n", [global, trim])],
            [maps:from_list(lists:zip(Names, Row)) || Row <- Rows, length(Row) =:= length(Names)];
        none -> []
    end.

-doc "Writes a file of the folder.".
-spec save(store(), file:filename_all(), unicode:chardata()) -> ok.
save(#{folder := Folder}, Name, Text) -> ok = write(Folder, Name, unicode:characters_to_binary(Text)).

-doc "Reads a file of the folder.".
-spec saved(store(), file:filename_all()) -> {ok, binary()} | none.
saved(#{folder := Folder}, Name) ->
    case file:read_file(filename:join(Folder, Name)) of
        {ok, Text} -> {ok, Text};
        {error, _} -> none
    end.

write(Folder, Name, Data) ->
    File = filename:join(Folder, Name),
    Part = <<(unicode:characters_to_binary(File))/binary, ".part">>,
    Written = maybe
        {ok, Handle} ?= file:open(Part, [write, raw, binary]),
        ok ?= file:write(Handle, Data),
        ok ?= file:sync(Handle),
        ok ?= file:close(Handle),
        file:rename(Part, File)
    end,
    Written =:= ok orelse file:delete(Part),
    written(File, Written).

written(_, ok) -> ok;
written(File, {error, Reason}) -> throw({unwritten, [File, ~": ", file:format_error(Reason)]}).
