-module(witness_error).
-moduledoc """
Errors of a run in another VM: the target of `m:witness_remote`, or a VM that is recorded.

An error is `{Module, Reason}`, and `witness:format_error/1` calls `Module:format_error(Reason)`. Another VM may send any term.
*Invariant:* that term never decides which module is called. `Module` is one of those that explain why a run does not start or has
ended, and they know the reason. None of them calls a module that a reason names.
""".

-export([check/1]).

%% The modules of the errors of `witness:start/1`, except those of inline instrumentation, which is not used in other VMs.
-define(MODULES, [witness_monitor, witness_option, witness_options, witness_run, witness_run_application, witness_run_attach,
                  witness_run_start, witness_spec]).

-doc "The error, if the term is one of a run, and its module can explain it.".
-spec check(term()) -> {ok, witness:error()} | error.
check({Module, Reason} = Error) ->
    case lists:member(Module, ?MODULES) andalso is_explained(Module, Reason) of
        true -> {ok, Error};
        false -> error
    end;
check(_) -> error.

is_explained(Module, Reason) ->
    try is_binary(unicode:characters_to_binary(Module:format_error(Reason)))
    catch error:_ -> false
    end.
