-module(witness_log_recording_refusal).
-moduledoc """
Why a recording cannot be replayed, by its own contents. Pure.

Only this module decides it. `witness replay` refuses for these reasons. The recorder asks here when a recording ends, so that the
summary of `witness record` says the same. Reasons that only a replay can find are missing here: another build of OTP, changed code.
""".

-export([reasons/2, unwoven/2, is_chosen/1, options/1, format/1]).

-export_type([reason/0, why/0]).

-doc """
- `{node, Node}`: the VM was a node, or became one;
- `tracing_only`, `late`: the options asked for a recording that is not for replays;
- `no_code`: it does not say which code ran;
- `{unwoven, Modules}`: code ran unwoven, so its steps are not in the recording.
""".
-type reason() :: {node, node()} | tracing_only | late | no_code | {unwoven, [{module(), why()}, ...]}.

-doc """
Why a module was not woven: it belongs to an application of OTP that no option names; it has no debug information (and whether its
folder was named); it cannot be woven for another reason; no option names its folder; or its code is in no file. `unknown`: the
recording does not say.
""".
-type why() :: {otp, App :: atom()} | {no_debug_info, File :: file:filename(), Named :: boolean()}
             | {not_woven, File :: file:filename()} | {folder, file:filename()} | memory | unknown.

-doc "The reasons, from the contents of the files `header` and `modules`; the latter is `#{}` if there is none.".
-spec reasons(Header :: map(), End :: map()) -> [reason()].
reasons(Header, End) ->
    [{node, Node} || Node <- nodes_of(Header, End)]
        ++ [tracing_only || #{tracing_only := true} <- [Header]]
        ++ [late || #{late := true} <- [Header]]
        ++ [no_code || not has_code(Header)]
        ++ [{unwoven, Unwoven} || [_ | _] = Unwoven <- [unwoven(Header, End)]].

nodes_of(Header, End) ->
    lists:uniq([Node || #{node := Node} <- [Header], is_atom(Node), Node =/= nonode@nohost]
               ++ [Node || #{nodes := Nodes} <- [End], length(Nodes) >= 0, Node <- Nodes, is_atom(Node)]).

has_code(#{code := #{pa := _, weave := _}, digests := _}) -> true;
has_code(_) -> false.

-doc "The modules that ran unwoven: messages that they take are in no recording.".
-spec unwoven(Header :: map(), End :: map()) -> [{module(), why()}].
unwoven(#{tracing_only := true}, _) -> [];
unwoven(Header, End) ->
    Whys = case End of #{unwoven := Said} when length(Said) >= 0 -> maps:from_list([Pair || {_, _} = Pair <- Said]); #{} -> #{} end,
    [{Module, valid_reason(maps:get(Module, Whys, unknown))} ||
     Module <- lists:usort([Ran || Ran <- ran_unwoven(Header, End), not is_own(Ran)] ++ maps:keys(Whys)), is_atom(Module)].

%% If the recording was not ended, the loaded modules are not known: the result is those that could not be woven.
ran_unwoven(Header, End) ->
    case End of
        #{modules := Modules} when length(Modules) > 0 ->
            Called = case Header of
                #{calls := Calls} when is_map(Calls) -> [Module || {Module, _, _} <- maps:keys(Calls)];
                #{} -> []
            end,
            [Module || {Module, _, false} <- Modules] -- [error_handler | Called ++ erlang:pre_loaded()];
        #{} -> case Header of #{unwoven := Names} when length(Names) >= 0 -> Names; #{} -> [] end
    end.

%% A module that the recorder names does not belong to Witness, whatever its name.
is_own(Module) -> is_atom(Module) andalso (Module =:= witness orelse lists:prefix("witness_", atom_to_list(Module))).

%% The contents of a file are untrusted.
valid_reason({otp, App}) when is_atom(App) -> {otp, App};
valid_reason({What, Name} = Why) when What =:= not_woven; What =:= folder -> valid_reason(Name, Why);
valid_reason({no_debug_info, Name, Named} = Why) when is_boolean(Named) -> valid_reason(Name, Why);
valid_reason(memory) -> memory;
valid_reason(_) -> unknown.

valid_reason(Name, Why) ->
    case io_lib:printable_unicode_list(Name) of
        true -> Why;
        false -> unknown
    end.

-doc "Whether the options asked for it.".
-spec is_chosen(reason()) -> boolean().
is_chosen(Reason) -> Reason =:= tracing_only orelse Reason =:= late.

-doc "The options of `witness record` that make such a program replayable, as far as options can.".
-spec options([reason()]) -> [string()].
options(Reasons) -> lists:append([["--weave", atom_to_list(App)] || {unwoven, Modules} <- Reasons, App <- apps(Modules)]
                                 ++ [["--pa", Dir] || {unwoven, Modules} <- Reasons, Dir <- folders(Modules)]).

apps(Modules) -> lists:usort([App || {_, {otp, App}} <- Modules]).

folders(Modules) -> lists:usort([Dir || {_, {folder, Dir}} <- Modules]
                                ++ [filename:dirname(File) || {_, {no_debug_info, File, false}} <- Modules]).

-doc "A reason as text, and what to do about it.".
-spec format(reason()) -> unicode:chardata().
format(late) -> ~"only the last part of the run was kept: a replay begins where the run began";
format(tracing_only) ->
    ~"it was recorded with --tracing-only: it says in which order messages came, and not which one a receive took, nor what calls returned";
format({node, Node}) -> [~"the program ran on a distributed node, ", clean(Node), ~": what other nodes do cannot be done again"];
format(no_code) -> ~"its header does not say which code ran: it was made by an older recorder";
format({unwoven, Modules}) ->
    Named = fun(Is) -> [Module || {Module, Why} <- Modules, Is(Why)] end,
    Parts = [otp([Module || {Module, {otp, _}} <- Modules], options([{unwoven, [One || {_, {otp, _}} = One <- Modules]}]))]
        ++ [folder([One || {_, {folder, _}} = One <- Modules])]
        ++ [debug_info([One || {_, {no_debug_info, _, _}} = One <- Modules])]
        ++ [plain(~"code ran that is in no file (code:load_binary, compile:forms), which a replay does not have: ",
                  Named(fun(Why) -> Why =:= memory end))]
        ++ [plain(~"modules were loaded that cannot be woven, so that what they did is not in the recording: ",
                  Named(fun({What, _}) -> What =:= not_woven; (Why) -> Why =:= unknown end))],
    lists:join(~"; ", [Part || Part <- Parts, Part =/= none]).

otp([], _) -> none;
otp(Modules, Options) ->
    [~"modules of OTP ran that were not woven (", names(Modules), ~"): record it again with ", lists:join($\s, Options)].

folder([]) -> none;
folder(Modules) ->
    [~"modules ran that are in folders that were not named (", names([Module || {Module, _} <- Modules]), ~"): record it again",
     with_folders(Modules)].

with_folders(Modules) ->
    case folders(Modules) of
        [] -> ~"";
        Dirs -> [~" with ", lists:join($\s, [[~"--pa ", clean(Dir)] || Dir <- Dirs])]
    end.

debug_info([]) -> none;
debug_info(Modules) ->
    [~"modules without debug information cannot be woven (",
     lists:join(~", ", shorten([[clean(Module), ~", ", clean(File)] || {Module, {_, File, _}} <- Modules])),
     ~"): compile them with +debug_info (for rebar3 {overrides, [{add, [{erl_opts, [debug_info]}]}]} does it for dependencies, ",
     ~"for mix ERL_COMPILER_OPTIONS=debug_info), and record it again", with_folders(Modules)].

plain(_, []) -> none;
plain(Text, Modules) -> [Text, names(Modules)].

names(Modules) -> lists:join(~", ", shorten([clean(Module) || Module <- Modules])).

%% Names in the text; the recording has the whole list.
-define(MAX_NAMES, 8).

shorten(Names) when length(Names) =< ?MAX_NAMES -> Names;
shorten(Names) -> lists:sublist(Names, ?MAX_NAMES) ++ [[integer_to_binary(length(Names) - ?MAX_NAMES), ~" more"]].

%% Names come from outside.
clean(Atom) when is_atom(Atom) -> clean(atom_to_list(Atom));
clean(Name) -> [Char || Char <- Name, Char >= $\s, Char < 127 orelse Char > 159].
