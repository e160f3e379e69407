-module(witness_inline_behaviour_child).
-moduledoc """
The signature of a process that a function of OTP or Elixir starts. It is the one that `m:witness_event_signature` would derive
from the VM's trace.
""".

-export([signature/2]).

-doc "From the module of the function and its arguments. An argument that cannot be known here is `'_'`.".
-spec signature(module(), [term()]) -> witness_event:signature().
signature(proc_lib, [M, F, A | _]) -> witness_event_signature:resolve({M, F, A});
signature(gen_event, [Name | _]) when is_tuple(Name) -> {gen_event, init, [Name]};
signature(gen_event, _) -> {gen_event, init, [undefined]};
signature('Elixir.Supervisor', [Children | _]) when is_list(Children) -> {'Elixir.Supervisor.Default', init, ['_']};
signature('Elixir.Agent', [M, F, A | _]) -> witness_event_signature:resolve({M, F, A});
signature('Elixir.Agent', [Fun | _]) -> witness_event_signature:resolve({erlang, apply, [Fun, []]});
signature('Elixir.Task', [M, F, A]) -> witness_event_signature:resolve({M, F, A});
signature('Elixir.Task', [Fun]) -> witness_event_signature:resolve({erlang, apply, [Fun, []]});
signature(gen_statem, Args) -> signature_of_args(Args);
signature(gen_server, Args) ->
    {Module, init, [Arg]} = signature_of_args(Args),
    server_signature(Module, Arg);
signature('Elixir.GenServer', [Module, Arg | _]) -> server_signature(Module, Arg);
signature(_, Args) -> signature_of_args(Args).

%% Without a name, or with one as the first argument.
signature_of_args([Module, Arg | _]) when is_atom(Module) -> {Module, init, [Arg]};
signature_of_args([_Name, Module, Arg | _]) -> {Module, init, [Arg]}.

%% The argument of the server contains what an agent or a supervisor is started with.
server_signature(Module, Arg) ->
    witness_event_signature:resolve({proc_lib, init_p, [self(), [], gen, init_it,
                                                        [gen_server, self(), self(), Module, Arg, []]]}).
