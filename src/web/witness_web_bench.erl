-module(witness_web_bench).
-moduledoc """
The report of a benchmark: the page of reports over the folder of an experiment, or over two, to compare before and
after a change.

```erlang
1> {ok, After} = witness_web_bench:read("after.bench").
2> {ok, Before} = witness_web_bench:read("before.bench").
3> {ok, "out/report.html"} = witness_web_bench:write("out", [After, Before]).
```

The data of the page is computed here, by the functions that also make the tables of `witness bench`.
""".

-export([read/1, write/2, write/3, is_sound/1]).

-export_type([measured/0]).

-doc "What was measured, in the form for the page, and whether each benchmark has a result that is sound.".
-opaque measured() :: {IsSound :: boolean(), witness_web_data:json()}.

-define(FILE_NAME, "report.html").

-doc "Reads the folder of an experiment. An error is text for people.".
-spec read(file:filename_all()) -> {ok, measured()} | {error, unicode:chardata()}.
read(Folder) ->
    maybe
        {ok, Store, Text} ?= witness_bench_store:read(Folder),
        {ok, Source} ?= decode_source(Folder, Text),
        {ok, Experiment} ?= parse_experiment(Source, Folder),
        [_ | _] = Rows ?= witness_bench_schedule:latest(witness_bench_store:rows(Store)),
        {ok, Platform} ?= read_platform(Store),
        {ok, Data} ?= data(Source, set_loading_time(Experiment, Store), Rows, Store),
        {ok, {lists:all(fun(#{status := Status}) -> Status =:= ok end, Rows),
              Data#{folder => witness_text:clean(filename:basename(filename:absname(Folder))),
                    platform => witness_text:clean(witness_bench_platform:line(Platform))}}}
    else
        [] -> {error, [Folder, ~": nothing has been measured yet"]};
        {error, _} = Error -> Error
    end.

decode_source(Folder, Text) ->
    case witness_bench_json:decode(Text) of
        {ok, #{} = Source} -> {ok, Source};
        {ok, _} -> {error, [Folder, ~"/experiment.json: an object is expected"]};
        {error, Problem} -> {error, [Folder, ~"/experiment.json: ", Problem]}
    end.

%% The rows determine the modes, so adapters of other tools need not be installed. The arrivals that were used are
%% in the folder.
parse_experiment(Source, Folder) ->
    Shapes = case Source of
        #{~"shapes" := [_ | _] = Given} -> [use_copied_file(Shape) || Shape <- Given];
        #{} -> []
    end,
    Local = Source#{~"modes" => [~"untraced"], ~"shapes" => Shapes},
    case witness_bench_experiment:parse(iolist_to_binary(json:encode(Local)), filename:absname(Folder)) of
        {ok, _} = Ok -> Ok;
        {error, Problem} -> {error, [Folder, ~"/experiment.json: ", Problem]}
    end.

use_copied_file(#{~"file" := _, ~"shape" := Name} = Shape) ->
    Label = maps:get(~"label", Shape, Name),
    case is_binary(Label) andalso re:run(Label, ~B"^[A-Za-z0-9_-]+\z", [{capture, none}]) of
        match -> Shape#{~"file" := <<"arrivals/", Label/binary, ".csv">>};
        _ -> Shape
    end;
use_copied_file(Shape) -> Shape.

%% With the loading time that was found, if the experiment asks to fit it.
set_loading_time(#{model := #{~"t" := ~"fit"} = Model} = Experiment, Store) ->
    case witness_bench_capacity:saved(Store) of
        {ok, T} -> Experiment#{model := Model#{~"t" := T}};
        none -> Experiment#{model := Model#{~"t" := 100}}
    end;
set_loading_time(Experiment, _) -> Experiment.

read_platform(Store) ->
    maybe
        {ok, Named} ?= witness_bench_store:platform(Store),
        {ok, _} ?= witness_bench_platform:named(Named)
    else
        none -> {error, ~"platform.json is not there"};
        {error, Problem} -> {error, [~"platform.json: ", Problem]}
    end.

%% Files of samples and of response times are read line by line, and may contain numbers only.
data(Source, Experiment, Rows, Store) ->
    Raw = #{samples => fun(Id) -> read_lines(~"samples", Id, fun witness_bench_store:sampled/2, Store) end,
            histogram => fun(Id) -> read_lines(~"responses", Id, fun witness_bench_store:histogram/2, Store) end},
    try {ok, witness_web_bench_data:to_json(Source, Experiment, Rows, Raw)}
    catch throw:{damaged, File} -> {error, [File, ~": is not one that Witness writes"]}
    end.

read_lines(Kind, Id, Read, Store) ->
    try Read(Store, Id)
    catch error:_ -> throw({damaged, [Kind, $/, Id, ~".csv"]})
    end.

-doc "Whether each benchmark has a result, and no trace was wrong.".
-spec is_sound(measured()) -> boolean().
is_sound({IsSound, _}) -> IsSound.

-doc #{equiv => write(Folder, Measured, built)}.
-spec write(file:filename(), [measured(), ...]) -> {ok, file:filename()} | {error, unicode:chardata()}.
write(Folder, Measured) -> write(Folder, Measured, built).

-doc """
Writes the report of one experiment, or of one and the experiment that it is compared with, into a folder. For `Page` see
`witness_web:open/2`. An error is text for people.
""".
-spec write(file:filename(), [measured(), ...], built | file:filename()) ->
    {ok, file:filename()} | {error, unicode:chardata()}.
write(Folder, Measured, From) ->
    File = filename:join(Folder, ?FILE_NAME),
    maybe
        {ok, Page} ?= witness_web_page:read(From),
        ok ?= witness_web_page:check_writable(File),
        Data = (witness_web_data:time_and_versions())#{kind => ~"bench", measured => [Data || {_, Data} <- Measured]},
        ok ?= witness_web_page:write(File, witness_web_data:encode(Data), Page),
        {ok, File}
    end.
