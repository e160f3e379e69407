-module(witness_weave_behaviour_calls).
-moduledoc """
The calls of OTP's behaviours and of Elixir's libraries that are woven, as data: rows of `m:witness_weave_calls`.

The code behind such a function is not woven, so the run time gives the events that the VM's tracing would show:
the request and the reply of a `call`, the message of a `cast`, the birth of the process that a `start` returns. Functions
that only inspect a message which the process has received by itself, such as `check_response`, have no row: that message
was an event already.
""".

-export([modules/0, rows/1]).

-type class() :: start | call | cast | reply | request.

-doc "The modules that have rows.".
-spec modules() -> [module()].
modules() ->
    [gen, gen_server, gen_statem, gen_event, supervisor, supervisor_bridge,
     'Elixir.GenServer', 'Elixir.Agent', 'Elixir.Task', 'Elixir.Supervisor', 'Elixir.DynamicSupervisor'].

-doc "The functions of a module, each with its class and arities.".
-spec rows(module()) -> #{atom() => {class(), [arity()]}}.
rows(gen) ->
    #{call => {call, [3, 4]}, reply => {reply, [2]}};
rows(gen_server) ->
    maps:merge(starts([3, 4]), (requests())#{
        call => {call, [2, 3]},
        multi_call => {call, [2, 3, 4]},
        cast => {cast, [2]},
        abcast => {cast, [2, 3]},
        reply => {reply, [2]},
        send_request => {request, [2, 4]}});
rows(gen_statem) ->
    maps:merge(starts([3, 4]), (requests())#{
        call => {call, [2, 3]},
        cast => {cast, [2]},
        reply => {reply, [1, 2]},
        send_request => {request, [2, 4]}});
rows(gen_event) ->
    maps:merge(starts([0, 1, 2]), (requests())#{
        call => {call, [3, 4]},
        sync_notify => {call, [2]},
        add_handler => {call, [3]},
        add_sup_handler => {call, [3]},
        delete_handler => {call, [3]},
        swap_handler => {call, [3]},
        swap_sup_handler => {call, [3]},
        which_handlers => {call, [1]},
        notify => {cast, [2]},
        send_request => {request, [3, 5]}});
rows(supervisor) ->
    #{start_link => {start, [2, 3]},
      start_child => {call, [2]},
      restart_child => {call, [2]},
      terminate_child => {call, [2]},
      delete_child => {call, [2]},
      get_childspec => {call, [2]},
      which_children => {call, [1]},
      which_child => {call, [2]},
      count_children => {call, [1]}};
rows(supervisor_bridge) ->
    #{start_link => {start, [2, 3]}};
rows('Elixir.GenServer') ->
    #{start => {start, [2, 3]},
      start_link => {start, [2, 3]},
      call => {call, [2, 3]},
      multi_call => {call, [2, 3, 4]},
      cast => {cast, [2]},
      abcast => {cast, [2, 3]},
      reply => {reply, [2]}};
rows('Elixir.Agent') ->
    #{start => {start, [1, 2, 3, 4]},
      start_link => {start, [1, 2, 3, 4]},
      get => {call, [2, 3, 4, 5]},
      update => {call, [2, 3, 4, 5]},
      get_and_update => {call, [2, 3, 4, 5]},
      cast => {cast, [2, 4]}};
rows('Elixir.Task') ->
    #{start => {start, [1, 3]},
      start_link => {start, [1, 3]},
      async => {start, [1, 3]},
      await => {request, [1, 2]},
      yield => {request, [1, 2]}};
rows('Elixir.Supervisor') ->
    #{start_link => {start, [2, 3]}};
rows('Elixir.DynamicSupervisor') ->
    #{start_link => {start, [2, 3]}};
rows(_) ->
    #{}.

starts(Arities) -> #{start => {start, Arities}, start_link => {start, Arities}, start_monitor => {start, Arities}}.

requests() -> #{receive_response => {request, [1, 2, 3]}, wait_response => {request, [1, 2, 3]}}.
