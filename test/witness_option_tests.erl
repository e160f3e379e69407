-module(witness_option_tests).
-moduledoc """
Options as data: each function and command that takes them says what it expected, and the documentation has the same defaults.
""".
-include_lib("eunit/include/eunit.hrl").

%% Of no type.
-define(WRONG, #{wrong => value}).

%% --- checks ----------------------------------------------------------------------

every_option_with_a_wrong_value_says_what_was_expected_test_() ->
    {timeout, 60, [{lists:flatten(io_lib:format("~s ~s", [Function, Name])), fun() ->
        Text = text(Try(#{Name => ?WRONG})),
        ?assertMatch({match, _}, re:run(Text, ["^", Prefix, "option ", atom_to_list(Name), ": expected [a-z{].+$"], [dotall])),
        ?assertEqual(nomatch, re:run(Text, "wrong"))
    end} || {Function, Prefix, Schema, Try} <- functions(), #{name := Name} = Option <- Schema, not takes_any(Option)]}.

takes_any(Option) -> maps:get(type, Option) =:= any andalso not is_map_key(expected, Option).

an_unknown_option_is_named_test_() ->
    [{Function, fun() -> ?assertMatch({match, _}, re:run(text(Try(#{tracers => 1})), ["^", Prefix, "unknown option tracers"])) end}
     || {Function, Prefix, _, Try} <- functions(), Function =/= "test"].

%% For each function the beginning of its errors, its options, and a call with some of them.
functions() ->
    Run = witness_option_schema:run(),
    [{"start", "", Run, fun(Options) -> refused(witness:start(maps:merge(#{system => {erlang, node, []}}, Options))) end},
     {"check", "", Run, fun(Options) ->
         refused(witness:start(maps:merge(#{system => {log, standard_input}}, Options)))
     end},
     %% A folder that is not empty: if a wrong value is accepted, nothing is recorded.
     {"record", "", witness_option_schema:record(), fun(Options) ->
         refused(witness_record:start(maps:merge(#{dir => "/", run => {erlang, node, []}}, Options)))
     end},
     {"replay", "", witness_option_schema:replay(), fun(Options) ->
         refused(witness_replay:replay(maps:merge(#{dir => "none"}, Options)))
     end},
     {"search", "", witness_option_schema:search(), fun(Options) ->
         refused(witness_search:search(maps:merge(#{dir => "/", run => {erlang, node, []}}, Options)))
     end},
     {"test", "", witness_option_schema:test(), fun(Options) ->
         try witness_test:check([], fun() -> ok end, Options) of
             ok -> error(accepted)
         catch
             error:{not_started, Lines} -> string:trim(lists:join("\n", Lines))
         end
     end},
     {"inline", "witness_inline: ", witness_option_schema:inline(), fun(Options) ->
         Forms = [{attribute, 1, file, {"a.erl", 1}}, {attribute, 1, module, a}],
         {error, [{_, [{_, witness_inline, Reason}]}], []} = witness_inline:parse_transform(Forms, [{witness_inline, Options}]),
         witness_inline:format_error(Reason)
     end}].

refused({error, Error}) -> witness:format_error(Error).

text(Text) -> unicode:characters_to_binary(Text).

options_are_a_map_test() ->
    [?assertEqual({error, {witness_option, {bad_option, options, "a map"}}}, Result)
     || Result <- [witness:start([]), witness_record:start([]), witness_replay:replay([])]].

lists_that_end_in_no_list_are_refused_test() ->
    [?assertMatch({error, {witness_option, {bad_option, Name, _}}},
                  witness:start(#{system => {erlang, node, []}, Name => [Value | Value]}))
     || {Name, Value} <- [{specs, "a"}, {applications, a}, {unobserved, self()}, {weave, a}, {monitors, {{a, b, 1}, {c, d}}}]].

%% --- the schema --------------------------------------------------------------------

defaults_are_values_of_their_types_test() ->
    Required = #{system => node, dir => "a", run => {erlang, node, []}},
    [?assertEqual(ok, witness_option:check(maps:merge(maps:with([Name || #{name := Name, required := true} <- Schema], Required),
                                                      witness_option:defaults(Schema)), Schema))
     || {_, _, Schema, _} <- functions()],
    [?assertEqual(ok, witness_option:check(#{Name => Default}, [maps:remove(required, Option)]))
     || #{name := Name, flags := Flags} = Option <- witness_option_schema:flags(), #{flag := _} = Flag <- Flags,
        not is_map_key(value, Flag) orelse maps:get(value, Flag) =/= boolean,
        Default <- [D || Key <- [default, otherwise], #{Key := D} <- [Flag]]].

an_option_stands_once_in_a_schema_test() ->
    [begin
         Names = [Name || #{name := Name} <- Schema],
         ?assertEqual(lists:usort(Names), lists:sort(Names))
     end || {_, _, Schema, _} <- functions()].

%% --- the command line ----------------------------------------------------------------

values_of_flags_are_checked_before_anything_runs_test_() ->
    [{lists:flatten([Command, " ", Flag]), fun() ->
        {error, Text} = witness_cli_args:parse([Command, Flag, "wrong", "x"]),
        ?assertMatch({match, _}, re:run(text(Text), ["^witness ", Command, ": ", Flag, " .* is expected, not 'wrong'"]))
    end} || {Command, Flag} <- [{atom_to_list(Command), Flag} || #{type := Type, flags := Flags} <- witness_option_schema:flags(),
                                                                 #{commands := Commands, flag := Flag} = Declared <- Flags,
                                                                 is_checked(maps:get(value, Declared, Type)), Command <- Commands]
                               ++ [{"explore", Flag} || Flag <- ["--depth", "--states", "--for", "--source", "--choreography",
                                                                 "--stamps", "--pool"]]].

is_checked({Type, _}) -> lists:member(Type, [one_of, at_least]);
is_checked(Type) -> lists:member(Type, [pos_integer, limit, seconds, megabytes, size_or_time]).

values_of_flags_have_the_units_of_their_options_test() ->
    ?assertMatch({attach, #{for := 1500, memory := 16#300000, slice_idle := 2000, rate := 20_000, message_size := 16#10000}},
                 witness_cli_args:parse(["attach", "n@h", "--for", "1.5", "--memory", "3", "--slice-idle", "2"])),
    ?assertMatch({attach, #{memory := 16#10000000}}, witness_cli_args:parse(["attach", "n@h"])),
    [?assertMatch({record, #{last := Last}}, witness_cli_args:parse(["record", "--last", Text, "m:f()"]))
     || {Text, Last} <- [{"64MB", {bytes, 64_000_000}}, {"1GB", {bytes, 1_000_000_000}}, {"9s", {seconds, 9}},
                         {"5min", {seconds, 300}}, {"2h", {seconds, 7200}}]].

the_help_has_the_defaults_test_() ->
    [{lists:flatten([Command, " ", Word]), fun() ->
        {print, Help} = witness_cli_args:parse([Command, "--help"]),
        ?assertNotEqual(nomatch, string:find(re:replace(text(Help), "\\s+", " ", [global, {return, binary}]), Word))
    end} || {Command, Word} <- [{"run", "(100000)"}, {"run", "(1000)"}, {"run", "partition (default); central"},
                                {"run", "or (default) every process"}, {"search", "tried (1000)"}, {"search", "steps has failed (10000)"},
                                {"search", "others (1)"}, {"search", "depends on (3)"}, {"check", "partition (default), or one"},
                                {"check", "line (1048576)"}, {"log", "(100000)"}, {"attach", "node (256)"},
                                {"attach", "after 60 seconds"}, {"attach", "(20000)"}, {"attach", "(65536)"}]].

errors_of_options_name_the_flag_test() ->
    [?assertEqual(Flag, text(witness_cli_options:name_option(Text)))
     || {Text, Flag} <- [{"option log_file: not for logs", ~"option --log: not for logs"},
                         {"option max_slices: expected x", ~"option --max-slices: expected x"},
                         {"option roots: only for logs", ~"option --root: only for logs"},
                         {"option hold_back: expected x", ~"option --hold-back: expected x"},
                         {"another error", ~"another error"}]].

%% --- the documentation ---------------------------------------------------------------

tables_of_modules_have_all_options_with_their_defaults_test_() ->
    [{File, fun() ->
        Rows = rows(read(File)),
        ?assertEqual([], [Name || #{name := Name} <- Schema, not is_map_key(atom_to_binary(Name), Rows)]),
        [?assertEqual({Name, default_text(Option)}, {Name, hd(string:split(maps:get(atom_to_binary(Name), Rows), "; "))})
         || #{name := Name} = Option <- Schema]
    end} || {File, Schema} <- [{"src/witness.erl", witness_option_schema:run()},
                               {"src/witness_test.erl", witness_option_schema:test()},
                               {"src/instrument/inline/witness_inline.erl", witness_option_schema:inline()}]].

%% They have atoms as Elixir writes them, and are short: a terminal of 120 columns shows a row on a line. A default that is no value
%% may say less.
tables_for_elixir_have_all_options_with_their_defaults_test_() ->
    [{File, fun() ->
        Rows = rows(read(File)),
        ?assertEqual([], [Name || #{name := Name} <- Schema, not is_map_key(atom_to_binary(Name), Rows)]),
        ?assertEqual([], [Name || Name := _ <- Rows, is_option(Name)] -- [atom_to_binary(Name) || #{name := Name} <- Schema]),
        [?assertEqual({Name, elixir(default_text(Option))}, {Name, maps:get(atom_to_binary(Name), Rows)})
         || #{name := Name} = Option <- Schema, not is_map_key(computed, Option)]
    end} || {File, Schema} <- [{"src/elixir/Elixir.Witness.erl", witness_option_schema:run()}]].

is_option(Name) -> re:run(Name, "^[a-z_]+$", [{capture, none}]) =:= match.

elixir(Text) -> re:replace(Text, "^`(?!true`|false`)(?=[a-z])", "`:", [{return, binary}]).

%% The default of each option in tables with three columns. A row may have several options.
rows(Text) ->
    {match, Rows} = re:run(Text, "^\\| (`.*?) \\| .* \\| (.*?) \\|$",
                           [global, multiline, unicode, {capture, all_but_first, binary}]),
    maps:from_list([{string:trim(Name, both, "`"), Default}
                    || [Names, Defaults] <- Rows,
                       {Name, Default} <- case string:split(Names, ", ", all) of
                           [One] -> [{One, Defaults}];
                           Several -> lists:zip(Several, string:split(Defaults, ", ", all))
                       end]).

default_text(#{computed := Text}) -> text(Text);
default_text(#{default := undefined}) -> ~"none";
default_text(#{default := Bytes, unit := bytes}) when is_integer(Bytes), Bytes rem (1 bsl 20) =:= 0 ->
    text([integer_to_list(Bytes bsr 20), " MB"]);
default_text(#{default := Bytes, unit := bytes}) when is_integer(Bytes) -> text([integer_to_list(Bytes bsr 10), " KB"]);
default_text(#{default := Default}) -> text(io_lib:format("`~tw`", [Default]));
default_text(#{required := true}) -> ~"required";
default_text(#{}) -> ~"none".

the_guide_has_a_row_for_each_option_test() ->
    [_, Section] = string:split(read("docs/api.md"), "\n## Options\n"),
    [Table | _] = string:split(Section, "\n## "),
    {match, Rows} = re:run(Table, "^\\| `.*$", [global, multiline, unicode, {capture, first, binary}]),
    ?assertEqual([row(Option) || Option <- witness_option_schema:run()], lists:append(Rows)).

row(#{name := Name} = Option) ->
    Unit = [[re:replace(atom_to_list(U), "_per_second", " per second"), ": "] || #{unit := U} <- [Option]],
    Infinity = [", or `infinity`" || #{type := limit} <- [Option]],
    Flags = lists:uniq([Flag || #{flags := Declared} <- [Option], #{flag := Flag} <- Declared]),
    text(["| `", atom_to_list(Name), "` | ", Unit, witness_option:expected(Option), Infinity, " | ", default_text(Option), " |",
          [[" ", lists:join(", ", [["`", Flag, "`"] || Flag <- Flags])] || Flags =/= []], " |"]).

the_documentation_of_recordings_and_replays_names_each_option_test() ->
    [begin
         [_, Text | _] = re:split(read(File), "-doc \"\"\"\n(?=- `)"),
         [Doc | _] = string:split(Text, "\"\"\"."),
         ?assertEqual([], [Name || #{name := Name} <- Schema, string:find(Doc, ["`", atom_to_list(Name), "`"]) =:= nomatch]),
         [?assertEqual({Name, maps:get(default, Option)}, {Name, binary_to_existing_atom(Told)})
          || #{name := Name, type := boolean} = Option <- Schema,
             {match, [Told]} <- [re:run(Doc, ["`", atom_to_list(Name), "`: [^;]*\\((true|false)\\)"],
                                        [{capture, all_but_first, binary}])]]
     end || {File, Schema} <- [{"src/record/witness_record.erl", witness_option_schema:record()},
                               {"src/replay/witness_replay.erl", witness_option_schema:replay()},
                              {"src/search/witness_search.erl", witness_option_schema:search()}]].

flags_are_in_the_guides_test() ->
    Guides = [read(filename:join("docs", Name)) || Name <- ["command-line.md", "record.md", "replay.md", "search.md", "logs.md", "api.md"]],
    ?assertEqual([], [Flag || #{flags := Flags} <- witness_option_schema:flags(), #{flag := Flag} <- Flags,
                              re:run(Guides, [Flag, "\\b"], [{capture, none}]) =:= nomatch]).

limits_are_in_the_guides_test() ->
    Limit = fun witness_cli_options:default/2,
    [?assertNotEqual(nomatch, string:find(re:replace(read(File), "\\s+", " ", [global, {return, binary}]), Word), {File, Word})
     || {File, Word} <- [{"docs/command-line.md", ["`--for` (", integer_to_list(Limit(attach, for) div 1000), " seconds)"]},
                         {"docs/command-line.md", ["`--rate` (", grouped(Limit(attach, rate)), " events a second)"]},
                         {"docs/command-line.md",
                          ["`--message-size` (", integer_to_list(Limit(attach, message_size) bsr 10), " KB)"]},
                         {"docs/command-line.md", ["`--memory` (", integer_to_list(Limit(attach, memory) bsr 20), " MB)"]},
                         {"docs/specifications.md", ["| `--max-slices`, ", grouped(Limit(run, max_slices)), " |"]},
                         {"docs/specifications.md", ["| `--max-obligations`, ", grouped(Limit(run, max_obligations)), " |"]},
                         {"docs/specifications.md", ["| `--max-state`, ", grouped(Limit(run, max_state)), " |"]},
                         {"docs/search.md", ["| `--schedules N` | how many schedules are tried (", grouped(Limit(search, schedules)), ") |"]},
                         {"docs/search.md", ["has failed (", grouped(Limit(search, steps)), ") |"]},
                         {"docs/logs.md", ["at most ", integer_to_list(Limit(check, max_line) bsr 20), " MB (`--max-line`)"]},
                         {"docs/logs.md", ["(", grouped(Limit(check, max_atoms)), ", `--max-atoms`)"]}]].

grouped(Number) when Number < 10_000 -> integer_to_list(Number);
grouped(Number) -> io_lib:format("~b,~3..0b", [Number div 1000, Number rem 1000]).

read(File) ->
    {ok, Text} = file:read_file(filename:join(witness_checkout:root(filename:dirname(code:which(?MODULE))), File)),
    Text.
