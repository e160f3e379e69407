-module(witness_record_loads).
-moduledoc """
Notices code that is loaded unwoven while a program is recorded: from folders that were not named, or made by the program
itself.

All code comes into the VM by `erlang:prepare_loading/2` or `erlang:load_module/2`. Woven code, that of the code server
included, calls `notice/2` first (`m:witness_record_runtime`), in any process. So a module is known before any of it can run,
and stays known when it is deleted or replaced. From the first one on the recorder does not trust the label of a message by
itself: code that is not woven passes labels on.

A module is woven if its attribute `witness_weave` names the run-time module of recording. Modules with functions that are
recorded as calls need not be woven: those with native functions, `error_handler`, and Witness itself.
""".

-export([start/1, notice/2, unwoven/0, noticed/0]).

-doc "Starts to notice modules, in a table of the caller. Modules of `Calls` need not be woven, since their calls are recorded.".
-spec start(Calls :: #{mfa() => non_neg_integer()}) -> ok.
start(Calls) ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    Own = filelib:wildcard("witness*.beam", filename:dirname(code:which(?MODULE))),
    Known = [Module || {Module, _, _} <- maps:keys(Calls)]
        ++ [list_to_atom(filename:basename(File, ".beam")) || File <- Own],
    true = ets:insert(?MODULE, [{Module, known} || Module <- [error_handler | Known]]),
    ok.

-doc "Must be called before this object code is loaded.".
-spec notice(module(), binary()) -> ok.
notice(Module, Code) ->
    %% Without the table nothing is recorded any more.
    try is_woven(Code) orelse is_monitor(Module) orelse ets:member(?MODULE, Module) of
        true ->
            case ets:lookup(?MODULE, Module) of
                [{_, {unwoven, _}}] -> witness_record_runtime:verify();
                _ -> ok
            end;
        false ->
            true = ets:insert(?MODULE, {Module, {unwoven, digest(Code)}}),
            witness_record_runtime:verify()
    catch
        error:badarg -> ok
    end.

%% Witness compiles specifications to these modules; they run in processes that are not the program's.
is_monitor(Module) -> lists:prefix("witness_spec_code_", atom_to_list(Module)).

%% Invalid object code will not be loaded.
is_woven(Code) ->
    case erts_internal:beamfile_chunk(Code, "Attr") of
        Attributes when is_binary(Attributes) ->
            proplists:get_value(witness_weave, binary_to_term(Attributes)) =:= [witness_record_runtime];
        undefined -> false
    end.

%% Invalid object code has no digest.
digest(Code) ->
    case erts_internal:beamfile_module_md5(Code) of
        MD5 when is_binary(MD5) -> MD5;
        _ -> unknown
    end.

-doc "The modules that were loaded unwoven since `start/1`.".
-spec unwoven() -> [module()].
unwoven() -> [Module || {Module, _} <- noticed()].

-doc "The same, with the digest of the object code that was loaded first.".
-spec noticed() -> [{module(), MD5 :: binary() | unknown}].
noticed() -> lists:sort([{Module, MD5} || {Module, {unwoven, MD5}} <- ets:tab2list(?MODULE)]).
