-module(witness_trace_library).
-moduledoc """
Native code of Witness: where it is, whether it could be loaded, and how large its tables are. The tracer and the recorder use it.
""".

-export([file/1, loaded/2, available/2, slots/2]).

-doc "The file of a library of Witness, without its ending, for `erlang:load_nif/2`.".
-spec file(Name :: string()) -> file:filename_all().
file(Name) -> filename:join(folder(), Name ++ "-" ++ erlang:system_info(nif_version)).

folder() ->
    case code:priv_dir(witness) of
        {error, _} -> filename:join(filename:dirname(filename:dirname(code:which(?MODULE))), "priv");
        Found -> Found
    end.

-doc """
Stores what `erlang:load_nif/2` has said, for `available/2`. It ends the `-on_load` of a module. A module is loaded without native
code, too, so that it can say why.
""".
-spec loaded(module(), ok | {error, {atom(), string()}}) -> ok.
loaded(Module, ok) ->
    _ = persistent_term:erase({Module, failed}),
    ok;
loaded(Module, {error, Reason}) -> persistent_term:put({Module, failed}, Reason).

-doc "Whether the native code of a module could be loaded; if not, why. `What` begins the text.".
-spec available(module(), What :: string()) -> ok | {error, unicode:chardata()}.
available(Module, What) ->
    case persistent_term:get({Module, failed}, none) of
        none -> ok;
        {Reason, Text} -> {error, io_lib:format("~ts could not be loaded: ~ts (~tw)", [What, Text, Reason])}
    end.

-doc "Slots of a table of processes: the power of two, from 4,096, that has an eighth of them, or `Most`.".
-spec slots(Processes :: non_neg_integer(), Most :: pos_integer()) -> pos_integer().
slots(Processes, Most) -> at_least(min(Processes div 8, Most), 1 bsl 12).

at_least(Enough, N) when N >= Enough -> N;
at_least(Enough, N) -> at_least(Enough, 2 * N).
