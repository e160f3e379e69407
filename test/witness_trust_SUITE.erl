-module(witness_trust_SUITE).
-moduledoc """
A recording is data until its user trusts it: no code that it names runs unless this account has recorded it on this machine, or
it is trusted. Whatever its files hold, Witness reads or refuses them in bounded memory.

If another account could have made a recording of these tests, it names a module that leaves a mark when it is loaded, and when
it is called.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 50}}].

all() ->
    [what_is_recorded_here_is_replayed, what_is_no_longer_what_was_recorded_needs_trust, a_seal_of_another_key_needs_trust,
     a_recording_whose_vm_was_killed_is_sealed, check_runs_nothing_unless_it_is_asked_to, what_would_run_is_listed,
     trust_lets_it_run, code_that_cannot_be_woven_never_runs, names_of_otp_and_of_witness_are_theirs,
     debug_information_that_was_exchanged_is_noticed, a_key_that_others_may_read_is_none, two_that_make_a_key_get_the_same,
     recordings_made_by_hand_run_nothing, forged_sizes_take_no_memory, recordings_that_are_mutated_run_nothing].

%% Bytes that the VM may grow by, whatever it reads.
-define(MOST, 1_500_000_000).

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(witness),
    %% Other suites of the run have files in priv_dir, too.
    Priv = filename:join(proplists:get_value(priv_dir, Config), ?MODULE_STRING),
    ok = file:make_dir(Priv),
    Folder = {folder, Priv},
    Own = compiled("own", ["-module(witness_trusted).\n-export([main/0]).\n",
                           "main() ->\n    Self = self(),\n"
                           "    Child = spawn(fun() -> receive {call, M, F} -> Self ! {answer, M:F()} end end),\n"
                           "    Child ! {call, erlang, system_time},\n"
                           "    receive {answer, _} -> ok end.\n"], [debug_info], [Folder]),
    Mark = filename:join(Priv, "mark"),
    Other = compiled("other", ["-module(witness_trusted).\n-export([main/0]).\n-on_load(load/0).\n",
                               "load() -> mark(), ok.\n",
                               "main() -> mark().\n",
                               "mark() -> _ = os:cmd(\"touch '", Mark, "'\"), file:write_file(\"", Mark, "\", \"\").\n"], [],
                     [Folder]),
    Spec = filename:join(Priv, "answers.hml"),
    ok = file:write_file(Spec, "with witness_trusted:main() check [_ <- _, _] max(X. [{answer, none} ? _] ff and [_ ? _] X).\n"),
    Dirs = [begin
                Dir = filename:join(Priv, Name),
                {ok, #{outcome := recorded} = Summary} =
                    witness_record:record(Options#{run => {witness_trusted, main, []}, dir => Dir, pa => [Own]}),
                ?assertNot(is_map_key(unsealed, Summary)),
                {Key, Dir}
            end || {Key, Name, Options} <- [{bare, "bare.rec", #{}}, {whole, "whole.rec", #{contents => true}}]],
    Dirs ++ [Folder, {started, Started}, {own, Own}, {other, Other}, {mark, Mark}, {spec, Spec} | Config].

end_per_suite(Config) -> [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))].

compiled(Name, Text, Options, Config) ->
    Dir = filename:join(folder(Config), Name),
    ok = filelib:ensure_path(Dir),
    Source = filename:join(Dir, "witness_trusted.erl"),
    ok = file:write_file(Source, Text),
    {ok, _} = compile:file(Source, [{outdir, Dir} | Options]),
    Dir.

%% --- the account that recorded ---------------------------------------------------

what_is_recorded_here_is_replayed(Config) ->
    [?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir})) || Dir <- [bare(Config), whole(Config)]],
    %% The location of a recording does not matter.
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => copy(bare(Config), Config)})),
    %% Verdicts are sealed, too.
    Dir = file(".rec", Config),
    {ok, Run} = witness_recorded_run:start(#{run => {witness_trusted, main, []}, dir => Dir, pa => [own(Config)]},
                                        #{specs => [spec(Config)], log => false}, fun(_) -> ok end),
    {ok, _} = witness:await(Run, 600_000),
    {ok, _} = witness:stop(Run),
    ?assert(filelib:is_regular(filename:join(Dir, "verdicts"))),
    ?assertEqual(ok, witness_record_seal:verify(Dir)),
    ok = append(filename:join(Dir, "verdicts")),
    ?assertMatch({error, {witness_record_seal, {file, _, _}}}, witness_record_seal:verify(Dir)).

what_is_no_longer_what_was_recorded_needs_trust(Config) ->
    Names = ["header", "order", "data", "processes", "modules", "index"],
    Changes = [{Name, Change} || Name <- Names, Change <- [fun gone/1, fun append/1, fun linked/1, fun cut/1]]
        ++ [{"seal", Change} || Change <- [fun gone/1, fun append/1, fun linked/1, fun cut/1, fun emptied/1]]
        ++ [{"verdicts", fun append/1}, {"verdicts", fun dangling/1}],
    [begin
         Dir = copy(bare(Config), Config),
         ok = Change(filename:join(Dir, Name)),
         ?assertMatch({Name, {error, _}}, {Name, witness_record_seal:verify(Dir)}),
         ?assertMatch({Name, {error, _}}, {Name, witness_replay:replay(#{dir => Dir})})
     end || {Name, Change} <- Changes],
    %% A file that other accounts may change could be changed after the check.
    [begin
         Dir = copy(bare(Config), Config),
         ok = file:change_mode(filename:join(Dir, Name), 8#777),
         ?assertMatch({error, {witness_replay, {untrusted, {witness_record_seal, {file, _, _}}, _}}},
                      witness_replay:replay(#{dir => Dir}))
     end || Name <- ["", "order"]],
    %% Every single bit of the seal counts.
    Seal = filename:join(bare(Config), "seal"),
    {ok, Bytes} = file:read_file(Seal),
    Dir = copy(bare(Config), Config),
    [begin
         <<Before:At/binary, Byte, After/binary>> = Bytes,
         ok = file:write_file(filename:join(Dir, "seal"), [Before, Byte bxor (1 bsl (At rem 8)), After]),
         ?assertMatch({At, {error, _}}, {At, witness_record_seal:verify(Dir)})
     end || At <- lists:seq(0, byte_size(Bytes) - 1)].

gone(File) -> file:delete(File).
append(File) -> file:write_file(File, "x", [append]).
emptied(File) -> file:write_file(File, "").
dangling(File) -> file:make_symlink("/nowhere", File).

linked(File) ->
    ok = file:rename(File, File ++ ".moved"),
    file:make_symlink(File ++ ".moved", File).

cut(File) ->
    {ok, Bytes} = file:read_file(File),
    file:write_file(File, binary:part(Bytes, 0, byte_size(Bytes) - 1)).

%% Another account, or another machine.
a_seal_of_another_key_needs_trust(Config) ->
    Dir = copy(bare(Config), Config),
    with_cache(Config, fun(_) ->
        ?assertEqual({error, {witness_record_key, none}}, witness_record_seal:verify(Dir)),
        {ok, _} = witness_record_key:make(),
        ?assertEqual({error, {witness_record_seal, foreign}}, witness_record_seal:verify(Dir)),
        ?assertMatch({error, {witness_replay, {untrusted, {witness_record_seal, foreign}, _}}},
                     witness_replay:replay(#{dir => Dir})),
        ok = witness_record_seal:seal(Dir),
        ?assertEqual(ok, witness_record_seal:verify(Dir))
    end),
    ?assertEqual({error, {witness_record_seal, foreign}}, witness_record_seal:verify(Dir)).

a_recording_whose_vm_was_killed_is_sealed(Config) ->
    Pipe = file(".pipe", Config),
    "" = os:cmd("mkfifo '" ++ Pipe ++ "'"),
    Own = compiled("killed", ["-module(witness_trusted).\n-export([main/0]).\n"
                              "main() -> _ = os:cmd(\"cat '", Pipe, "'; kill -9 \" ++ os:getpid()), receive never -> ok end.\n"],
                   [debug_info], Config),
    Dir = file(".rec", Config),
    {ok, Recording} = witness_record:start(#{run => {witness_trusted, main, []}, dir => Dir, pa => [Own]}),
    %% It runs, and is killed when the pipe has been written.
    "" = os:cmd("echo > '" ++ Pipe ++ "'"),
    {ok, #{outcome := {ended, {vm, _}}}} = witness_record:await(Recording, 600_000),
    ?assertNot(filelib:is_regular(filename:join(Dir, "modules"))),
    ?assertEqual(ok, witness_record_seal:verify(Dir)),
    %% A file that is added later does not belong to the recording.
    ok = file:write_file(filename:join(Dir, "modules"), "x"),
    ?assertMatch({error, {witness_record_seal, {file, _, _}}}, witness_record_seal:verify(Dir)).

%% --- what runs -------------------------------------------------------------------

check_runs_nothing_unless_it_is_asked_to(Config) ->
    Check = ["check", "--spec", spec(Config)],
    #{exit := 2, stderr := Missing} = witness(Config, Check ++ [bare(Config)]),
    witness_command:contains(Missing, [~"does not have the contents of messages", ~"--replay", ~"--contents"]),
    #{exit := 0} = witness(Config, Check ++ ["--replay", bare(Config)]),
    #{exit := 0} = witness(Config, Check ++ [whole(Config)]),
    Dir = forged(bare(Config), Config),
    #{exit := 2} = witness(Config, Check ++ [Dir]),
    #{exit := 2, stderr := Untrusted} = witness(Config, Check ++ ["--replay", Dir]),
    witness_command:contains(Untrusted, [~"witness check: ", ~"--trust"]),
    unmarked(Config),
    [begin
         #{exit := 2, stderr := Error} = witness(Config, Check ++ Arguments),
         witness_command:contains(Error, [Expected])
     end || {Arguments, Expected} <- [{["--trust", bare(Config)], ~"--trust is for --replay"},
                                      {["--replay", spec(Config)], ~"--replay is for the folder of a recording"},
                                      {["--replay", "-"], ~"--replay is for the folder of a recording"}]],
    %% The same for programs.
    Options = #{specs => [spec(Config)], log => false},
    {error, Reason} = witness:start(Options#{system => {log, {recording, bare(Config)}}}),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(witness:format_error(Reason)), ~"{replay, ")),
    ?assertMatch(#{outcome := refused}, checked({replay, #{dir => Dir}}, Config)),
    unmarked(Config),
    ?assertMatch(#{outcome := ok}, checked({replay, #{dir => bare(Config)}}, Config)).

what_would_run_is_listed(Config) ->
    Dir = forged(bare(Config), Config),
    Digest = binary:encode_hex(witness_trusted_digest(other(Config)), lowercase),
    Again = ["replay", "--step", "--command", "where", Dir],
    [begin
         #{exit := 2, stdout := ~"", stderr := Text} = witness(Config, Arguments),
         witness_command:contains(Text, [~"why: ", ~"witness_trusted:main()", unicode:characters_to_binary(other(Config)),
                                         ~"witness_trusted, digest ",
                                         Digest, ~"modules are those of this Erlang/OTP", ~"--trust"])
     end || Arguments <- [["replay", Dir], ["replay", "--check", Dir], ["replay", "--spec", spec(Config), Dir],
                          ["replay", "--events", file(".log", Config), Dir], Again, ["replay", "--json", Dir],
                          ["check", "--replay", "--spec", spec(Config), Dir]]],
    ?assertMatch({error, {witness_replay, {untrusted, _, _}}}, witness_step:open(#{dir => Dir})),
    ?assertMatch({error, {witness_replay, {untrusted, _, _}}},
                 witness_replay:calls({~"witness_trusted", ~"main", 0}, #{dir => Dir})),
    ?assertMatch({error, {witness_replay, {untrusted, _, _}}}, witness_replay:start_stopped(#{1 => 0}, #{dir => Dir})),
    unmarked(Config).

witness_trusted_digest(Dir) ->
    {ok, Code} = file:read_file(filename:join(Dir, "witness_trusted.beam")),
    witness_weave_objects:digest(Code).

trust_lets_it_run(Config) ->
    Dir = copy(bare(Config), Config),
    ok = gone(filename:join(Dir, "seal")),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir, trust => true})),
    #{exit := 0} = witness(Config, ["replay", "--trust", Dir]),
    #{exit := 0} = witness(Config, ["check", "--replay", "--trust", "--spec", spec(Config), Dir]).

%% The folders hold a module that leaves a mark, and it cannot be woven. Trust is for the code of a replay, and that is woven.
code_that_cannot_be_woven_never_runs(Config) ->
    Dir = forged(bare(Config), Config),
    ?assertMatch({error, {witness_replay, {unwoven, _}}},
                 witness_replay:replay(#{dir => Dir, trust => true, allow_changed => true})),
    %% Without the list of loaded modules nothing is known of the module, and it must not run either.
    ok = gone(filename:join(Dir, "modules")),
    ?assertMatch({error, {witness_replay, {unwoven, _}}},
                 witness_replay:replay(#{dir => Dir, trust => true, allow_changed => true})),
    %% If the recording claims that the module was never loaded, the replay refuses it when a process calls it.
    Silent = forged(bare(Config), Config),
    Files = witness_recording_forger:take_apart(Silent),
    ok = witness_recording_forger:put_together(Silent, witness_recording_forger:change(modules, fun(#{modules := Modules} = End) ->
        End#{modules := [Module || {Name, _, _} = Module <- Modules, Name =/= witness_trusted]}
    end, Files)),
    ?assertMatch({ok, #{outcome := diverged}}, witness_replay:replay(#{dir => Silent, trust => true, allow_changed => true})),
    unmarked(Config),
    %% A module with native functions is never woven. The log has the results of its functions; anything else would need it loaded.
    ?assertMatch({ok, #{outcome := identical}}, native("native", "1 = witness_trusted_nif:value()", Config)),
    ?assertMatch({ok, #{outcome := diverged}}, native("native_info", "_ = witness_trusted_nif:module_info(module)", Config)),
    %% A module of OTP is loaded as it is.
    ?assertMatch({ok, #{outcome := identical}},
                 native("native_otp", "_ = crypto:hash(sha256, []), crypto = crypto:module_info(module)", Config)).

%% What becomes of a program that was recorded beside a module with native functions, which leaves a mark when it is loaded.
native(Name, Body, Config) ->
    Dir = file(".rec", Config),
    Own = compiled(Name, ["-module(witness_trusted).\n-export([main/0]).\nmain() -> ", Body, ".\n"], [debug_info], Config),
    Source = filename:join(Own, "witness_trusted_nif.erl"),
    ok = file:write_file(Source, ["-module(witness_trusted_nif).\n-export([value/0]).\n-on_load(load/0).\n",
                                  "load() -> _ = file:write_file(\"", mark(Config),
                                  "\", \"\"), _ = erlang:load_nif(\"/nowhere\", 0), ok.\n"
                                  "value() -> 1.\n"]),
    {ok, _} = compile:file(Source, [debug_info, {outdir, Own}]),
    {ok, #{outcome := recorded, refused := []}} =
        witness_record:record(#{run => {witness_trusted, main, []}, dir => Dir, pa => [Own]}),
    %% It was loaded while the program was recorded.
    _ = file:delete(mark(Config)),
    Replayed = witness_replay:replay(#{dir => Dir}),
    unmarked(Config),
    Replayed.

%% The replay VM boots before it checks what it loads. So it must never find what the folders of a recording have under these names,
%% woven or not.
names_of_otp_and_of_witness_are_theirs(Config) ->
    [begin
         Dir = copy(bare(Config), Config),
         Shadows = file(".ebin", Config),
         ok = file:make_dir(Shadows),
         {ok, _} = file:copy(filename:join(own(Config), "witness_trusted.beam"), filename:join(Shadows, "witness_trusted.beam")),
         Source = filename:join(Shadows, atom_to_list(Module) ++ ".erl"),
         ok = file:write_file(Source, [io_lib:format("-module(~w).\n-export([~w/~b]).\n~w(~s) -> _ = prim_file:write_file(\"~ts\", <<>>), error(shadow).\n",
             [Module, Function, Arity, Function, lists:join($,, lists:duplicate(Arity, "_")), mark(Config)])]),
         {ok, Module, Code} = compile:file(Source, [binary | Options]),
         ok = file:write_file(filename:join(Shadows, atom_to_list(Module) ++ ".beam"), Code),
         ok = changed(header, fun(#{code := Of} = Header) -> Header#{code := Of#{pa := [Shadows]}} end, Dir),
         %% The recording claims that it was never loaded, so that it need not be woven.
         ok = changed(modules, fun(#{modules := Modules} = End) -> End#{modules := lists:keydelete(Module, 1, Modules)} end, Dir),
         Replayed = witness_replay:replay(#{dir => Dir, trust => true, allow_changed => true}),
         unmarked(Config),
         ?assertMatch({Module, {ok, #{outcome := identical}}}, {Module, Replayed})
     end || {Module, Function, Arity} <- [{error_handler, undefined_function, 3}, {application_controller, start, 1},
                                          {kernel, start, 2},
                                          {gen_server, start_link, 4}, {witness_replay_node, main, 0},
                                          {witness_replay_loads, start, 2},
                                          {witness_log_recording, open, 2}],
            Options <- [[], [debug_info]]].

%% Woven code is made of the debug information, and the module's own MD5 digest leaves that out.
debug_information_that_was_exchanged_is_noticed(Config) ->
    Own = own(Config),
    Others = compiled("others", "-module(witness_trusted).\n-export([main/0]).\nmain() -> erlang:display(other).\n", [debug_info],
                      Config),
    Name = "witness_trusted.beam",
    {ok, Code} = file:read_file(filename:join(Own, Name)),
    {ok, {_, [{"Dbgi", Other}]}} = beam_lib:chunks(filename:join(Others, Name), ["Dbgi"]),
    {ok, _, Chunks} = beam_lib:all_chunks(Code),
    {ok, Exchanged} = beam_lib:build_module(lists:keystore("Dbgi", 1, Chunks, {"Dbgi", Other})),
    ?assertEqual(code:module_md5(Code), code:module_md5(Exchanged)),
    ?assertNotEqual(witness_weave_objects:digest(Code), witness_weave_objects:digest(Exchanged)),
    ok = file:write_file(filename:join(Others, Name), Exchanged),
    ?assertEqual({error, {witness_replay, {changed, [witness_trusted]}}},
                 witness_replay:replay(#{dir => bare(Config), pa => [Others]})),
    %% If it was exchanged in a module that OTP has, the module is listed.
    Dir = copy(bare(Config), Config),
    {ok, Lists} = file:read_file(code:which(lists)),
    {ok, _, Own1} = beam_lib:all_chunks(Lists),
    {ok, Forged} = beam_lib:build_module(lists:keystore("Dbgi", 1, Own1, {"Dbgi", Other})),
    ok = changed(header, fun(#{digests := Digests} = Header) ->
        ?assertEqual(witness_weave_objects:digest(Lists), maps:get(lists, Digests)),
        Header#{digests := Digests#{lists := witness_weave_objects:digest(Forged)}}
    end, Dir),
    {error, {witness_replay, {untrusted, _, #{modules := Listed}}}} = witness_replay:replay(#{dir => Dir}),
    ?assertEqual([lists, witness_trusted], [Module || {Module, _} <- Listed]),
    %% The folder of the build, and options that change nothing, make no difference.
    {ok, Source} = file:read_file(filename:join(Own, "witness_trusted.erl")),
    Elsewhere = compiled("elsewhere", Source, [debug_info, {i, "/nowhere"}], Config),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => bare(Config), pa => [Elsewhere]})).

%% --- the key ---------------------------------------------------------------------

a_key_that_others_may_read_is_none(Config) ->
    with_cache(Config, fun(Cache) ->
        Key = filename:join(Cache, "key"),
        ?assertEqual({error, {witness_record_key, none}}, witness_record_key:find()),
        {ok, <<Secret:32/binary>>} = witness_record_key:make(),
        {ok, Info} = file:read_file_info(Key),
        ?assertEqual(8#600, element(8, Info) band 8#777),
        ?assertEqual({ok, Secret}, witness_record_key:make()),
        ?assertEqual(["key"], filelib:wildcard("*", Cache)),
        Dir = copy(bare(Config), Config),
        ok = witness_record_seal:seal(Dir),
        [begin
             ok = file:change_mode(Key, Mode),
             ?assertMatch({error, {witness_record_key, {file, Key, _}}}, witness_record_key:make()),
             ?assertMatch({error, {witness_replay, {untrusted, {witness_record_key, {file, Key, _}}, _}}},
                          witness_replay:replay(#{dir => Dir}))
         end || Mode <- [8#644, 8#660, 8#606]],
        ok = file:change_mode(Key, 8#600),
        ?assertEqual(ok, witness_record_seal:verify(Dir)),
        ok = linked(Key),
        ?assertMatch({error, {witness_record_key, {file, Key, _}}}, witness_record_key:find()),
        ok = file:delete(Key),
        ok = file:write_file(Key, ""),
        ok = file:change_mode(Key, 8#600),
        ?assertMatch({error, {witness_record_key, {file, Key, _}}}, witness_record_key:make())
    end).

two_that_make_a_key_get_the_same(Config) ->
    with_cache(Config, fun(_) ->
        Pids = [spawn_monitor(fun() -> receive go -> exit(witness_record_key:make()) end end) || _ <- lists:seq(1, 50)],
        _ = [Pid ! go || {Pid, _} <- Pids],
        Keys = [receive {'DOWN', Ref, process, Pid, Key} -> Key end || {Pid, Ref} <- Pids],
        ?assertMatch([{ok, _}], lists:usort(Keys))
    end).

with_cache(Config, Fun) ->
    Cache = file(".cache", Config),
    Before = os:getenv("WITNESS_CACHE"),
    true = os:putenv("WITNESS_CACHE", Cache),
    try Fun(Cache)
    after
        case Before of
            false -> os:unsetenv("WITNESS_CACHE");
            _ -> os:putenv("WITNESS_CACHE", Before)
        end
    end.

%% --- the corpus ------------------------------------------------------------------

recordings_made_by_hand_run_nothing(Config) ->
    Made = by_hand(Config),
    ?assert(length(Made) >= 20),
    [begin
         Dir = copy(forged(whole(Config), Config), Config),
         ok = Make(Dir),
         ok = harmless(Name, Dir, Config)
     end || {Name, Make} <- Made],
    %% The first one as it came: in an archive, read where it was unpacked.
    Dir = forged(bare(Config), Config),
    ok = relative(Dir, Config),
    Here = [{cd, filename:dirname(Dir)} | Config],
    [begin
         #{exit := Exit, stderr := Error} = witness(Here, Arguments ++ [filename:basename(Dir)]),
         ?assertMatch({2, nomatch}, {Exit, binary:match(Error, ~"an error in Witness")})
     end || Arguments <- [["check", "--spec", spec(Config)], ["check", "--replay", "--spec", spec(Config)], ["replay"],
                          ["replay", "--trust"],
                          ["replay", "--trust", "--allow-changed", "--check"]]],
    unmarked(Config).

by_hand(Config) ->
    Header = fun(Change) -> fun(Dir) -> changed(header, Change, Dir) end end,
    End = fun(Change) -> fun(Dir) -> changed(modules, Change, Dir) end end,
    Order = fun(Bytes) -> fun(Dir) -> appended(order, witness_recording_forger:block(1, Bytes), Dir) end end,
    Data = fun(Term) -> fun(Dir) -> replaced(data, witness_recording_forger:block(1, item(Term)), Dir) end end,
    [{"relative folders, no modules, an own module", fun(Dir) -> relative(Dir, Config) end},
     {"no modules", fun(Dir) -> gone(filename:join(Dir, "modules")) end},
     {"a seal without a code", fun(Dir) -> file:write_file(filename:join(Dir, "seal"), <<"WITSEAL", 1, 0, 0:256>>) end},
     {"a seal that is a folder",
      fun(Dir) -> _ = file:delete(filename:join(Dir, "seal")), file:make_dir(filename:join(Dir, "seal")) end},
     {"a seal without end",
      fun(Dir) -> _ = file:delete(filename:join(Dir, "seal")), file:make_symlink("/dev/zero", filename:join(Dir, "seal")) end},
     {"a header that is a link to a device", fun(Dir) ->
         _ = file:delete(filename:join(Dir, "header")),
         file:make_symlink("/dev/zero", filename:join(Dir, "header"))
     end},
     {"all modules woven, as it says", End(fun(E) -> E#{modules := [{witness_trusted, <<0:128>>, true}]} end)},
     {"modules that are no list", End(fun(E) -> E#{modules := [{lists, <<0:128>>, true} | lists]} end)},
     {"folders that are an improper list", Header(fun(#{code := C} = H) -> H#{code := C#{pa := ["/tmp" | "/"]}} end)},
     {"a folder with a zero", Header(fun(#{code := C} = H) -> H#{code := C#{pa := [[$/, 0, $x]]}} end)},
     {"folders up from here", Header(fun(#{code := C} = H) -> H#{code := C#{pa := ["../other"]}} end)},
     {"a call of the operating system", Header(fun(H) -> H#{run := {os, cmd, ["touch " ++ mark(Config)]}} end)},
     {"arguments that are no list", Header(fun(H) -> H#{run := {os, cmd, [a | b]}} end)},
     {"an application of its own",
      Header(fun(H) -> (maps:remove(run, H))#{app => witness_trusted, applications => [witness_trusted]} end)},
     {"digests that are none", Header(fun(H) -> H#{digests := #{"x" => 1, lists => []}} end)},
     {"a table of calls that is none", Header(fun(H) -> H#{calls := #{{os, cmd, 1} => a}} end)},
     {"a header that is no map", Header(fun(_) -> [header] end)},
     {"escape sequences for the terminal",
      Header(fun(H) -> H#{otp := ~"\e[2J\e]0;x\a", started := ~"\e[31m", run := {'\e[2J', '\e[2J', ["\e[2J"]}} end)},
     {"verdicts that name monitors", fun(Dir) ->
         file:write_file(filename:join(Dir, "verdicts"), ["{\"witness_verdicts\":1,\"whole\":true,\"specs\":[],\"monitors\":",
                                                          "[\"_:_/_=witness_trusted\"],\"verdicts\":[]}"])
     end},
     {"verdicts that are a pipe", fun(Dir) ->
         "" = os:cmd("mkfifo '" ++ filename:join(Dir, "verdicts") ++ "'"),
         ok
     end},
     {"entries that are a pipe", fun(Dir) ->
         ok = gone(filename:join(Dir, "order")),
         "" = os:cmd("mkfifo '" ++ filename:join(Dir, "order") ++ "'"),
         ok
     end},
     {"a message that is a function of another module", Data({call, fun witness_trusted:main/0})},
     {"a result that is a call", Data({os, cmd, ["touch " ++ mark(Config)]})},
     {"a process with more messages than there are", Order(witness_log_recording_entry:encode({from, 1, 1 bsl 62}))},
     {"a time that is over for ever", Order(witness_log_recording_entry:encode({timeout, 1 bsl 62}))},
     {"more contents than there are", Order(witness_log_recording_entry:encode({content, 1 bsl 62}))},
     {"a process that spawns itself", Order(witness_log_recording_entry:encode({spawn, 1}))},
     {"a birth of itself", fun(Dir) ->
         appended(processes, witness_log_recording_process:encode({birth, #{id => 9, parent => 9, place => 0, pid => self(),
                                                                            signature => {witness_trusted, main, []}}}), Dir)
     end},
     {"names of atoms that are none", fun(Dir) -> appended(modules, <<3, 255, 255, 255>>, Dir) end}].

relative(Dir, Config) ->
    ok = changed(header, fun(#{code := Code} = Header) -> Header#{code := Code#{pa := [filename:basename(Dir)]}} end, Dir),
    {ok, _} = file:copy(filename:join(other(Config), "witness_trusted.beam"), filename:join(Dir, "witness_trusted.beam")),
    file:delete(filename:join(Dir, "modules")).

changed(Kind, Change, Dir) ->
    witness_recording_forger:put_together(Dir, witness_recording_forger:change(Kind, Change,
                                                                               witness_recording_forger:take_apart(Dir))).

%% Without the index, since its sizes would be wrong.
appended(Kind, Block, Dir) ->
    #{Kind := {Id, Blocks}} = Files = witness_recording_forger:take_apart(Dir),
    without_sizes(Kind, Dir, Files#{Kind := {Id, case Kind of order -> [Block]; _ -> Blocks ++ [Block] end}}).

replaced(Kind, Block, Dir) ->
    #{Kind := {Id, _}} = Files = witness_recording_forger:take_apart(Dir),
    without_sizes(Kind, Dir, Files#{Kind := {Id, [Block]}}).

without_sizes(modules, Dir, Files) -> witness_recording_forger:put_together(Dir, Files);
without_sizes(_, Dir, Files) -> witness_recording_forger:put_together(Dir, maps:without([index, modules], Files)).

item(Term) ->
    External = term_to_binary(Term),
    [witness_log_recording_number:leb(byte_size(External)), External].

%% Some kilobytes that would become gigabytes.
forged_sizes_take_no_memory(Config) ->
    Zeros = binary:copy(<<0>>, 50_000_000),
    List = <<131, 108, 100_000_000:32, (binary:copy(<<106>>, 100_000_001))/binary>>,
    Processes = binary:copy(<<2, 1>>, 8_000_000),
    Parts = binary:copy(<<1, 200, 1, 0>>, 10_000_000),
    Early = << <<5, N, 250, 1, 0:2000>> || N <- lists:seq(1, 120) >>,
    Births = fun(Ids, Size) ->
        << <<(witness_log_recording_process:encode({birth, #{id => Id, parent => 0, place => 0, pid => self(),
                                                             signature => {m, f, [[Id | lists:duplicate(Size, [])]]}}}))/binary>>
           || Id <- Ids >>
    end,
    [begin
         Dir = forged(whole(Config), Config),
         ok = Make(Dir),
         ok = harmless(Name, Dir, Config)
     end || {Name, Make} <- [
         {"births of processes without end", fun(Dir) ->
             #{processes := {Id, Blocks}} = Files = witness_recording_forger:take_apart(Dir),
             Forged = [Births(lists:seq(N, N + 1_999), 1_500) || N <- lists:seq(1, 14_001, 2_000)],
             without_sizes(processes, Dir, Files#{processes := {Id, Blocks ++ Forged}})
         end},
         {"a message of a hundred million empty lists", fun(Dir) ->
             Item = [witness_log_recording_number:leb(byte_size(List)), List],
             replaced(data, witness_recording_forger:block(1, Item), Dir)
         end},
         {"a header of a hundred million empty lists", fun(Dir) ->
             #{header := {Id, _}} = Files = witness_recording_forger:take_apart(Dir),
             witness_recording_forger:put_together(Dir, Files#{header := {Id, [List]}})
         end},
         {"ends of processes without end", fun(Dir) -> repeated(processes, Processes, 12, Dir) end},
         {"births of a process without end", fun(Dir) -> repeated(processes, binary:copy(Births([1], 60), 50_000), 2, Dir) end},
         {"parts of processes that are not there", fun(Dir) -> repeated(order, Parts, 4, Dir) end},
         {"parts that wait for ever", fun(Dir) -> repeated(data, Early, 20, Dir) end},
         {"an index of zeros", fun(Dir) -> repeated(index, Zeros, 2, Dir) end},
         {"names of atoms without end", fun(Dir) ->
             appended(modules, binary:copy(<<1, $a>>, 20_000_000), Dir)
         end}]].

repeated(Kind, Block, Times, Dir) ->
    #{Kind := {Id, Blocks}} = Files = witness_recording_forger:take_apart(Dir),
    Forged = Files#{Kind := {Id, Blocks ++ lists:duplicate(Times, Block)}},
    case Kind of
        index -> witness_recording_forger:put_together(Dir, Forged);
        _ -> without_sizes(Kind, Dir, Forged)
    end.

%% WITNESS_FORGED: how many. WITNESS_FORGED_SEED: others than the last time.
recordings_that_are_mutated_run_nothing(Config) ->
    Seed = number("WITNESS_FORGED_SEED", 1),
    Sources = [witness_recording_forger:take_apart(forged(Dir, Config)) || Dir <- [bare(Config), whole(Config)]],
    Dir = forged(whole(Config), Config),
    Results = [begin
                   _ = rand:seed(exsss, {Seed, N, 0}),
                   Files = witness_recording_forger:mutated(lists:nth(1 + N rem 2, Sources)),
                   ok = witness_recording_forger:put_together(Dir, Files),
                   read(lists:flatten(io_lib:format("~b of seed ~b", [N, Seed])), Dir, Config)
               end || N <- lists:seq(1, number("WITNESS_FORGED", 150))],
    unmarked(Config),
    Counts = maps:map(fun(_, L) -> length(L) end, maps:groups_from_list(fun({Outcome, _}) -> Outcome end, Results)),
    Text = io_lib:format("~b mutations of seed ~b: ~p, at most ~b MB more memory",
                         [length(Results), Seed, Counts, megabytes(Results)]),
    ct:pal("~ts", [Text]),
    %% Some mutations are read as far as their events.
    ?assertMatch(#{ok := _, refused := _}, Counts),
    {comment, lists:flatten(Text)}.

megabytes(Results) -> lists:max([Bytes || {_, Bytes} <- Results]) div 1_000_000.

number(Name, Default) ->
    case os:getenv(Name) of
        false -> Default;
        Text -> list_to_integer(Text)
    end.

%% --- reading what is forged ------------------------------------------------------

harmless(Name, Dir, Config) ->
    {_, Bytes} = read(Name, Dir, Config),
    ct:pal("~ts: at most ~b MB more memory", [Name, Bytes div 1_000_000]),
    [begin
         {Code, Text} = printed(Arguments),
         ?assertMatch({Name, Arguments, nomatch}, {Name, Arguments, binary:match(Text, ~"an error in Witness")}),
         ?assertMatch({Name, nomatch}, {Name, binary:match(Text, ~"\e[2J")}),
         case Arguments of
             ["log" | _] -> ok;
             _ -> ?assertEqual({Name, Arguments, 2}, {Name, Arguments, Code})
         end
     end || Arguments <- [["log", Dir], ["log", "--json", Dir], ["replay", Dir], ["replay", "--check", Dir],
                          ["replay", "--step", "--command", "where", Dir]]],
    unmarked(Config).

%% Reads everything, and starts what would replay it: how far the events went, and by how many bytes the VM grew meanwhile.
read(Name, Dir, Config) ->
    Before = erlang:memory(total),
    Self = self(),
    Sampler = spawn_link(fun() -> sampling(Self, 0) end),
    {Pid, Ref} = spawn_monitor(fun() -> exit({read, everything(Dir, Config)}) end),
    Result = receive
        {'DOWN', Ref, process, Pid, {read, Found}} -> Found;
        {'DOWN', Ref, process, Pid, Reason} -> ct:fail({Name, Reason})
    after 120_000 -> ct:fail({Name, process_info(Pid, current_stacktrace)})
    end,
    Sampler ! stop,
    Most = receive {Sampler, M} -> M end,
    Most - Before < ?MOST orelse ct:fail({Name, memory, Most - Before}),
    {Result, max(0, Most - Before)}.

sampling(Parent, Most) ->
    receive stop -> Parent ! {self(), Most}
    after 5 -> sampling(Parent, max(Most, erlang:memory(total)))
    end.

everything(Dir, Config) ->
    {error, Reason} = witness_replay:replay(#{dir => Dir}),
    true = is_binary(unicode:characters_to_binary(witness:format_error(Reason))),
    _ = witness_verdicts:read(Dir),
    _ = case witness_log_recording:open(Dir) of
        {ok, R} ->
            _ = [printable(witness_log_recording:Of(R)) || Of <- [modules, unwoven, atoms, processes]],
            Ids = witness_log_recording:ids(R),
            _ = [[printable(witness_log_recording:entries(Id, R)), printable(witness_log_recording:demand(Id, R)),
                  printable(witness_log_recording:fold_runs(fun(_, N) -> N + 1 end, 0, Id, R))] || Id <- lists:sublist(Ids, 20)];
        {error, Error} -> printable({error, Error})
    end,
    case checked({recording, Dir}, Config) of
        #{outcome := refused} -> refused;
        #{} -> ok;
        {error, _} -> refused
    end.

printable({error, Error}) -> true = is_binary(unicode:characters_to_binary(witness:format_error(Error)));
printable({ok, _}) -> true.

checked(Log, Config) ->
    case witness:start(#{system => {log, Log}, specs => [spec(Config)], log => false}) of
        {ok, Run} ->
            {ok, Summary} = witness:await(Run, 100_000),
            {ok, _} = witness:stop(Run),
            Summary;
        {error, Reason} ->
            true = is_binary(unicode:characters_to_binary(witness:format_error(Reason))),
            {error, Reason}
    end.

%% The exit code of a command, and what it prints here.
printed(Arguments) -> witness_output:of_call(fun() -> witness_cli:run(Arguments) end).

%% --- helpers ---------------------------------------------------------------------

%% A copy with the folders of the module that leaves marks, and with the right digests.
forged(Source, Config) ->
    Dir = copy(Source, Config),
    Digest = witness_trusted_digest(other(Config)),
    ok = changed(header, fun(#{code := Code, digests := Digests} = Header) ->
        Header#{code := Code#{pa := [other(Config)]}, digests := Digests#{witness_trusted := Digest}}
    end, Dir),
    Dir.

copy(Source, Config) ->
    Dir = file(".rec", Config),
    ok = file:make_dir(Dir),
    ok = file:change_mode(Dir, 8#700),
    [begin
         {ok, _} = file:copy(File, filename:join(Dir, filename:basename(File))),
         ok = file:change_mode(filename:join(Dir, filename:basename(File)), 8#600)
     end || File <- filelib:wildcard(filename:join(Source, "*")), filelib:is_regular(File)],
    Dir.

unmarked(Config) -> ?assertEqual({error, enoent}, file:read_file_info(mark(Config))).

file(Extension, Config) ->
    filename:join(folder(Config), "t-" ++ integer_to_list(erlang:unique_integer([positive])) ++ Extension).

folder(Config) -> proplists:get_value(folder, Config).
bare(Config) -> proplists:get_value(bare, Config).
whole(Config) -> proplists:get_value(whole, Config).
own(Config) -> proplists:get_value(own, Config).
other(Config) -> proplists:get_value(other, Config).
mark(Config) -> proplists:get_value(mark, Config).
spec(Config) -> proplists:get_value(spec, Config).

witness(Config, Arguments) ->
    Root = witness_checkout:root(proplists:get_value(data_dir, Config)),
    witness_command:run(Config, filename:join([Root, "bin", "witness"]), Arguments).
