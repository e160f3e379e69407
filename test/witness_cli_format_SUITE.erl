-module(witness_cli_format_SUITE).
-moduledoc "`witness format` on real files: what is written, what stays as it is, and what it says of both.".

-include_lib("stdlib/include/assert.hrl").
-include_lib("kernel/include/file.hrl").

-import(witness_command, [contains/2]).

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([files_are_rewritten_if_that_changes_them/1, check_writes_nothing/1, a_folder_is_its_specifications/1,
         standard_input_goes_to_standard_output/1, files_with_errors_stay_as_they_are/1, permissions_and_links_are_kept/1,
         a_file_that_cannot_be_written_stays_as_it_is/1, json_says_the_same/1, other_encodings/1, wrong_usage_ends_with_2/1]).

-define(WRITTEN, ~"with m:f(_)\ncheck [_?a]ff.").
-define(FORMATTED, ~"with m:f(_)\ncheck [_ ? a] ff.\n").
-define(WRONG, ~"with m:f(_)\ncheck [_ ? ]ff.").

all() ->
    [files_are_rewritten_if_that_changes_them, check_writes_nothing, a_folder_is_its_specifications,
     standard_input_goes_to_standard_output, files_with_errors_stay_as_they_are, permissions_and_links_are_kept,
     a_file_that_cannot_be_written_stays_as_it_is, json_says_the_same, other_encodings, wrong_usage_ends_with_2].

init_per_suite(Config) ->
    Ready = [{root, witness_checkout:root(proplists:get_value(data_dir, Config))} | Config],
    %% The first call may have to build Witness, and says so.
    #{exit := 0} = witness_command:run(Ready, executable(Ready), ["--version"]),
    Ready.

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), Case),
    ok = filelib:ensure_path(Folder),
    [{cd, Folder} | Config].

end_per_testcase(_, _) -> ok.

files_are_rewritten_if_that_changes_them(Config) ->
    put_file("a.hml", ?WRITTEN, Config),
    put_file("b.hml", ?FORMATTED, Config),
    Before = inode("b.hml", Config),
    #{exit := 0, stdout := ~"a.hml: formatted\n", stderr := ~""} = format(["a.hml", "b.hml", "a.hml"], Config),
    ?assertEqual(?FORMATTED, get_file("a.hml", Config)),
    ?assertEqual(Before, inode("b.hml", Config)),
    #{exit := 0, stdout := ~"", stderr := ~""} = format(["a.hml", "b.hml"], Config),
    ?assertEqual(["a.hml", "b.hml"], names(Config)).

check_writes_nothing(Config) ->
    put_file("a.hml", ?WRITTEN, Config),
    put_file("b.hml", ?FORMATTED, Config),
    #{exit := 1, stdout := ~"a.hml: not formatted\n", stderr := ~""} = format(["--check", "b.hml", "a.hml"], Config),
    ?assertEqual(?WRITTEN, get_file("a.hml", Config)),
    #{exit := 0, stdout := ~"", stderr := ~""} = format(["--check", "b.hml"], Config),
    put_file("c.hml", ?WRONG, Config),
    #{exit := 2, stdout := ~"a.hml: not formatted\n", stderr := Errors} = format(["--check", "c.hml", "a.hml"], Config),
    contains(Errors, [~"c.hml:2:12: error: "]).

a_folder_is_its_specifications(Config) ->
    [put_file(Name, ?WRITTEN, Config) || Name <- ["s/a.hml", "s/deep/b.hml", "s/c.txt", "s/.d/e.hml", "s/_build/f.hml", "s/deps/g.hml", "h.hml"]],
    ok = file:make_symlink("..", path("s/deep/up", Config)),
    #{exit := 0, stdout := ~"s/a.hml: formatted\ns/deep/b.hml: formatted\n"} = format(["s"], Config),
    ?assertEqual(?WRITTEN, get_file("s/c.txt", Config)),
    #{exit := 1, stdout := ~"h.hml: not formatted\n"} = format(["--check", "."], Config),
    #{exit := 0, stdout := ~"s/deps/g.hml: formatted\n"} = format(["s/deps"], Config),
    ok = filelib:ensure_path(path("empty", Config)),
    #{exit := 2, stdout := ~"", stderr := ~"witness format: empty: there is no .hml file in this folder\n"} = format(["empty"], Config).

standard_input_goes_to_standard_output(Config) ->
    Given = fun(Text, Options) ->
        put_file("in", Text, Config),
        witness_command:run(Config, "/bin/sh", ["-c", ["exec \"$0\" format ", Options, " - < in"], executable(Config)])
    end,
    #{exit := 0, stdout := ?FORMATTED, stderr := ~""} = Given(?WRITTEN, ""),
    #{exit := 0, stdout := ?FORMATTED, stderr := ~""} = Given([<<16#feff/utf8>>, ?FORMATTED], ""),
    #{exit := 1, stdout := ~"standard input: not formatted\n"} = Given(?WRITTEN, "--check"),
    #{exit := 0, stdout := ~""} = Given(?FORMATTED, "--check"),
    #{exit := 2, stdout := ~"", stderr := Errors} = Given(?WRONG, ""),
    contains(Errors, [~"standard input:2:12: error: "]),
    #{exit := 2, stdout := ~"", stderr := Large} = Given(binary:copy(~"% abcdefg\n", 200_000), ""),
    contains(Large, [~"at most 1000000 bytes"]),
    %% All of a large text.
    Many = binary:copy(?FORMATTED, 20_000),
    #{exit := 0, stdout := Many} = Given(Many, "").

files_with_errors_stay_as_they_are(Config) ->
    put_file("a.hml", ?WRONG, Config),
    put_file("b.hml", <<"with m:f(_) none. % ", 16#e4>>, Config),
    put_file("c.hml", ?WRITTEN, Config),
    #{exit := 2, stdout := ~"c.hml: formatted\n", stderr := Errors} = format(["a.hml", "b.hml", "no.hml", "c.hml"], Config),
    contains(Errors, [~"a.hml:2:12: error: expected a pattern", ~"b.hml:1:21: error: this byte is not UTF-8",
                      ~"no.hml: error: cannot read the file: no such file or directory"]),
    ?assertEqual(?WRONG, get_file("a.hml", Config)).

permissions_and_links_are_kept(Config) ->
    put_file("a.hml", ?WRITTEN, Config),
    ok = file:change_mode(path("a.hml", Config), 8#754),
    ok = file:make_symlink("b.hml", path("c.hml", Config)),
    ok = file:make_symlink("a.hml", path("b.hml", Config)),
    #{exit := 0} = format(["c.hml"], Config),
    ?assertEqual({ok, "b.hml"}, file:read_link(path("c.hml", Config))),
    ?assertEqual({ok, "a.hml"}, file:read_link(path("b.hml", Config))),
    ?assertEqual(?FORMATTED, get_file("a.hml", Config)),
    {ok, #file_info{mode = Mode}} = file:read_file_info(path("a.hml", Config)),
    ?assertEqual(8#754, Mode band 8#7777).

%% Another file is written, which then takes the place of the old one.
a_file_that_cannot_be_written_stays_as_it_is(Config) ->
    #{exit := 2, stderr := Device} = format(["/dev/null"], Config),
    contains(Device, [~"/dev/null: error: it is not a file"]),
    %% No file can be as long as this folder, its file and the name of the temporary file.
    Long = "s/" ++ lists:duplicate(250, $a) ++ ".hml",
    put_file(Long, ?WRITTEN, Config),
    #{exit := 2, stdout := ~"", stderr := Errors} = format([Long], Config),
    contains(Errors, [~"error: cannot write the file: file name too long"]),
    ?assertEqual(?WRITTEN, get_file(Long, Config)).

json_says_the_same(Config) ->
    put_file("a.hml", ?WRITTEN, Config),
    put_file("b.hml", ?FORMATTED, Config),
    put_file("c.hml", ?WRONG, Config),
    #{exit := 2, stdout := Checked, stderr := ~""} = format(["--check", "--json", "a.hml", "b.hml", "c.hml"], Config),
    ?assertMatch([#{~"type" := ~"format", ~"file" := ~"a.hml", ~"changed" := true, ~"written" := false, ~"text" := null},
                  #{~"type" := ~"format", ~"file" := ~"b.hml", ~"changed" := false, ~"written" := false},
                  #{~"type" := ~"diagnostic", ~"file" := ~"c.hml", ~"line" := 2}], lines(Checked)),
    #{exit := 0, stdout := Written} = format(["--json", "a.hml", "b.hml"], Config),
    ?assertMatch([#{~"file" := ~"a.hml", ~"changed" := true, ~"written" := true},
                  #{~"file" := ~"b.hml", ~"changed" := false, ~"written" := false}], lines(Written)),
    #{exit := 0, stdout := Text} =
        witness_command:run(Config, "/bin/sh", ["-c", "exec \"$0\" format --json - < b.hml", executable(Config)]),
    ?assertMatch([#{~"file" := ~"standard input", ~"text" := ?FORMATTED, ~"written" := false}], lines(Text)).

other_encodings(Config) ->
    put_file("a.hml", ~"with m:f(_)\t% gr\xc3\xbc\xc3\x9fe\r\ncheck\r\n\t[_ ? \"\xd1\x89\"] ff.", Config),
    #{exit := 0} = format(["a.hml"], Config),
    ?assertEqual(~"with m:f(_)  % gr\xc3\xbc\xc3\x9fe\ncheck\n  [_ ? \"\xd1\x89\"] ff.\n", get_file("a.hml", Config)),
    %% A mark alone is no reason to write.
    put_file("b.hml", [<<16#feff/utf8>>, ?FORMATTED], Config),
    #{exit := 0, stdout := ~""} = format(["--check", "b.hml"], Config).

wrong_usage_ends_with_2(Config) ->
    [begin
         #{exit := 2, stdout := ~"", stderr := Error} = format(Arguments, Config),
         contains(Error, [Text])
     end || {Arguments, Text} <- [{[], ~"witness format: FILE.hml|DIR|- is expected"},
                                  {["-", "a.hml"], ~"- stands for standard input, and is the only file then"},
                                  {["--chek", "a.hml"], ~"did you mean --check?"}]].

format(Arguments, Config) -> witness_command:run(Config, executable(Config), ["format" | Arguments]).

executable(Config) -> filename:join([proplists:get_value(root, Config), "bin", "witness"]).

path(Name, Config) -> filename:join(proplists:get_value(cd, Config), Name).

put_file(Name, Text, Config) ->
    ok = filelib:ensure_dir(path(Name, Config)),
    ok = file:write_file(path(Name, Config), Text).

get_file(Name, Config) ->
    {ok, Text} = file:read_file(path(Name, Config)),
    Text.

names(Config) ->
    {ok, Names} = file:list_dir(proplists:get_value(cd, Config)),
    lists:sort(Names).

inode(Name, Config) ->
    {ok, #file_info{inode = Inode, mtime = Time}} = file:read_file_info(path(Name, Config)),
    {Inode, Time}.

lines(Output) -> [json:decode(Line) || Line <- binary:split(Output, ~"\n", [global, trim_all])].
