-module(witness_weave_description_tests).
-moduledoc "Woven object code has the debug information and the documentation of the original, and is not read by them.".
-include_lib("eunit/include/eunit.hrl").

-define(DESCRIBING, ["Dbgi", "Docs", "ExCk"]).

%% A module that weaving changes, and one that it leaves as it is, as the recorder weaves them.
tools_read_the_original_test_() ->
    [{atom_to_list(Module), {timeout, 60, fun() ->
        {ok, Object = {Module, _, Original}} = object(Module),
        {ok, #{woven := Woven}} = witness_weave:prepare(Object, plan()),
        ?assertMatch({ok, {Module, [{attributes, [_ | _]}]}}, beam_lib:chunks(Woven, [attributes])),
        ?assertEqual(described(Original), described(Woven)),
        ?assertNotEqual([], described(Woven)),
        ?assertMatch([_ | _], [Runtime || {witness_weave, Runtime} <- attributes(Woven)])
    end}} || Module <- [gen_server, proplists]].

%% The forms of the original come back, so it can be woven once more.
it_can_be_woven_again_test_() -> {timeout, 60, fun it_can_be_woven_again/0}.

it_can_be_woven_again() ->
    {ok, Object = {Module, File, Original}} = object(gen_server),
    {ok, #{woven := Woven}} = witness_weave:prepare(Object, plan()),
    {ok, Forms, _} = witness_weave:forms(Object),
    ?assertMatch({ok, Forms, _}, witness_weave:forms({Module, File, Woven})),
    ?assertNotEqual(code:module_md5(Original), code:module_md5(Woven)).

what_the_woven_module_had_is_replaced_test() ->
    Code = fun(Text, Options) ->
        {ok, a, Binary} = compile:forms(witness_weave_source:forms(Text), [binary, debug_info | Options]),
        Binary
    end,
    {Original, Woven} = {Code("-module(a).\n-export([f/0]).\nf() -> 1.\n", []),
                         Code("-module(a).\n-export([f/0]).\nf() -> 2.\n", [])},
    Kept = witness_weave_description:keep(Original, Woven),
    ?assertEqual(described(Original), described(Kept)),
    ?assertEqual(code:module_md5(Woven), code:module_md5(Kept)),
    ?assertEqual([], described(witness_weave_description:keep(stripped(Original), Woven))).

plan() -> (witness_record_calls:plan())#{unchanged => kept}.

object(Module) ->
    File = code:which(Module),
    {ok, Binary} = file:read_file(File),
    {ok, {Module, File, Binary}}.

described(Binary) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Binary),
    lists:sort([Chunk || {Id, _} = Chunk <- Chunks, lists:member(Id, ?DESCRIBING)]).

attributes(Binary) ->
    {ok, {_, [{attributes, Attributes}]}} = beam_lib:chunks(Binary, [attributes]),
    Attributes.

stripped(Binary) ->
    {ok, {_, Stripped}} = beam_lib:strip(Binary),
    Stripped.
