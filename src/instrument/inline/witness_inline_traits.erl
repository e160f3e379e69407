-module(witness_inline_traits).
-moduledoc """
What the code of a monitor tells about its callbacks: what they may do, and where. The object code is read for it, which takes some
ten milliseconds, so it is done once for each module, before the run.
""".

-export([of_module/1]).
-export_type([traits/0]).

-doc """
`does`: the callbacks only compute, they act but call no code that may be woven (`inner`), or they may call any (`outer`).
`specification`: the module is a compiled specification. `survives`: another process can go on with its monitors.
""".
-type traits() :: #{does := compute | inner | outer, specification := boolean(), survives := boolean()}.

-doc "The traits of the module of a monitor. If its code is not known, it may do anything.".
-spec of_module(module()) -> traits().
of_module(Module) ->
    #{does => allowed_actions(Module), specification => is_specification(Module), survives => can_continue_elsewhere(Module)}.

allowed_actions(Module) ->
    case is_specification(Module) orelse witness_monitor_safety:only_computes(Module) of
        true -> compute;
        false -> case calls_out(Module) of true -> outer; false -> inner end
    end.

can_continue_elsewhere(Module) ->
    case is_specification(Module) of
        true -> not lists:keymember(witness_self, 1, Module:module_info(attributes));
        false -> witness_monitor_safety:computes_anywhere(Module)
    end.

%% Compiled specifications are in memory only.
is_specification(Module) -> lists:prefix("witness_spec_code_", atom_to_list(Module)).

%% Whether a monitor calls code that may be woven. Actions of OTP's own modules are not events here.
calls_out(Module) ->
    try
        {Module, Code, _} = code:get_object_code(Module),
        {beam_file, Module, _, _, _, Functions} = beam_disasm:file(Code),
        Calls = [called_module(I) || {function, _, _, _, Instructions} <- Functions, I <- Instructions],
        lists:any(fun(Called) -> Called =:= any orelse Called =/= none andalso Called =/= Module
                                     andalso not is_of_otp(code:which(Called)) end, lists:usort(Calls))
    catch
        error:_ -> true
    end.

called_module(Instruction) when is_tuple(Instruction) ->
    case element(1, Instruction) of
        Name when Name =:= call_fun; Name =:= call_fun2; Name =:= apply; Name =:= apply_last -> any;
        _ -> case [M || {extfunc, M, _, _} <- tuple_to_list(Instruction)] of
            [M] -> M;
            [] -> none
        end
    end;
called_module(_) -> none.

is_of_otp(preloaded) -> true;
is_of_otp(File) when is_list(File) -> lists:prefix(code:lib_dir(), File);
is_of_otp(_) -> false.
