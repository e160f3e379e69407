-module(witness_verdicts_tests).
-include_lib("eunit/include/eunit.hrl").

verdict(Verdict, Name) ->
    #{verdict => Verdict, spec => ~"some/where/a.hml:3", name => Name, process => self(), slice => [{~"N", 1}], info => undefined}.

verdicts(List) ->
    Options = #{specs => ["some/where/a.hml"], monitors => [{{m, '_', 1}, {mon, []}}, {{'_', 'F', '_'}, {mon, {a, "b"}}}]},
    lists:foldl(fun witness_verdicts:add/2, witness_verdicts:new(Options), List).

what_was_written_is_read_test() ->
    witness_folder:with(fun(Dir) ->
        ?assertEqual(none, witness_verdicts:read(Dir)),
        Written = verdicts([verdict(no, ~"one"), verdict(yes, undefined)]),
        ok = witness_verdicts:write(Dir, Written),
        {ok, #{specs := Specs, monitors := Monitors, verdicts := Read}} = witness_verdicts:read(Dir),
        ?assertEqual([~"some/where/a.hml"], Specs),
        ?assertEqual([~"m:_/1=mon", ~"_:'F'/_=mon({a,[98]})"], Monitors),
        [?assertMatch({ok, _}, witness_cli_call:parse_monitor(binary_to_list(Monitor))) || Monitor <- Monitors],
        ?assertEqual([], witness_verdicts:differences(Read, Written))
    end).

what_is_not_the_same_is_told_test() ->
    Recorded = verdicts([verdict(no, ~"one"), verdict(yes, ~"two"), verdict(inconclusive, ~"three")]),
    ?assertEqual([], witness_verdicts:differences(Recorded,
                                                  verdicts([verdict(yes, ~"three"), verdict(yes, ~"two"), verdict(no, ~"one")]))),
    ?assertMatch([#{name := ~"one", spec := ~"a.hml:3", slice := ~"N = 1", recorded := [no], replayed := [yes]}],
                 witness_verdicts:differences(Recorded, verdicts([verdict(yes, ~"one"), verdict(yes, ~"two")]))),
    ?assertMatch([#{name := ~"two", recorded := [yes], replayed := []}, #{name := ~"zero", recorded := [], replayed := [yes]}],
                 witness_verdicts:differences(Recorded, verdicts([verdict(no, ~"one"), verdict(yes, ~"zero")]))),
    ?assertMatch([#{name := ~"two", recorded := [yes], replayed := [inconclusive]}],
                 witness_verdicts:differences(Recorded, verdicts([verdict(no, ~"one"), verdict(inconclusive, ~"two")]))).

what_is_no_file_of_verdicts_is_named_test() ->
    witness_folder:with(fun(Dir) ->
        File = filename:join(Dir, "verdicts"),
        [begin
             ok = file:write_file(File, Text),
             {error, Error} = witness_verdicts:read(Dir),
             ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Error),
                                               unicode:characters_to_binary([File, ": ", Word])))
         end || {Text, Word} <- [
             {"", "it is no JSON"}, {"[1", "it is no JSON"}, {"{}", "it does not hold"}, {"[]", "it does not hold"},
             {"{\"witness_verdicts\":2}", "it has the version 2"},
             {"{\"witness_verdicts\":1,\"whole\":false}", "there were more than"},
             {"{\"witness_verdicts\":1,\"whole\":true,\"specs\":[1],\"monitors\":[],\"verdicts\":[]}", "it does not hold"},
             {"{\"witness_verdicts\":1,\"whole\":true,\"specs\":[],\"monitors\":[],\"verdicts\":[{\"verdict\":\"no\"}]}",
              "it does not hold"}]],
        ok = file:delete(File),
        ok = file:make_dir(File),
        ?assertMatch({error, _}, witness_verdicts:read(Dir))
    end).
