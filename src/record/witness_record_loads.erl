-module(witness_record_loads).
-moduledoc """
Notices code that is loaded while a program is recorded and was not woven: from folders that nobody has named, or made
by the program itself.

All code comes into the VM by `erlang:prepare_loading/2` or `erlang:load_module/2`. Woven code, that of the code server
included, asks `notice/2` first (`m:witness_record_runtime`), in whatever process. So a module is known before any of it can run,
and stays known when it is deleted or replaced. From the first one on the recorder believes no label of a message by
itself: code that is not woven passes them on.

Whatever has the run-time module of recording in its attribute `witness_weave` is woven. Modules whose functions are
recorded as calls need not be: those with native functions, `error_handler`, and Witness itself.
""".

-export([start/1, notice/2, unwoven/0, noticed/0]).

-doc "From now on; the caller owns what is noticed. These calls are recorded, so that their modules need not be woven.".
-spec start(Calls :: #{mfa() => non_neg_integer()}) -> ok.
start(Calls) ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    Own = filelib:wildcard("witness*.beam", filename:dirname(code:which(?MODULE))),
    Known = [Module || {Module, _, _} <- maps:keys(Calls)]
        ++ [list_to_atom(filename:basename(File, ".beam")) || File <- Own],
    true = ets:insert(?MODULE, [{Module, known} || Module <- [error_handler | Known]]),
    ok.

-doc "This object code is about to be loaded.".
-spec notice(module(), binary()) -> ok.
notice(Module, Code) ->
    %% Without a table nothing is recorded any more.
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

%% Witness makes these of specifications, for processes that are none of the program's.
is_monitor(Module) -> lists:prefix("witness_spec_code_", atom_to_list(Module)).

%% What is no object code will not be loaded.
is_woven(Code) ->
    case erts_internal:beamfile_chunk(Code, "Attr") of
        Attributes when is_binary(Attributes) ->
            proplists:get_value(witness_weave, binary_to_term(Attributes)) =:= [witness_record_runtime];
        undefined -> false
    end.

%% Of what is no object code there is none.
digest(Code) ->
    case erts_internal:beamfile_module_md5(Code) of
        MD5 when is_binary(MD5) -> MD5;
        _ -> unknown
    end.

-doc "The modules that were loaded as they are, since `start/1`.".
-spec unwoven() -> [module()].
unwoven() -> [Module || {Module, _} <- noticed()].

-doc "The same, with the digest of what was loaded first.".
-spec noticed() -> [{module(), MD5 :: binary() | unknown}].
noticed() -> lists:sort([{Module, MD5} || {Module, {unwoven, MD5}} <- ets:tab2list(?MODULE)]).
