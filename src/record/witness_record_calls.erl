-module(witness_record_calls).
-moduledoc """
The calls that a recording needs, as data: those by which a program learns from outside of its processes what it cannot
compute by itself.

| Class | What | In the recording |
|---|---|---|
| `result` | functions of the VM: time, names, references, system information, ETS and other memory that processes share | their results and exceptions, by the numbers below |
| `foreign` | exported functions of modules that are not woven: those of the VM that work on files, sockets and compressed data, and modules with native functions | the same; what happens inside is outside |
| `leave` | calls that raise an exit, which may end the process | a result, `ok`, before the call: if a process ends without it, and without an error, a signal has ended it |
| `hibernate` | calls after which the process waits for a message before it goes on | a result, `ok`, before the call, and another one, `true`, when the process has woken: if it ends without the second, a signal has ended it in that call |
| `send`, `spawn`, `information`, `dictionary`, `wait`, `token`, `make_fun`, `halt`, `load`, `digest` | calls that the recorder handles in another way | see `m:witness_record_runtime` |

**Numbers.** The number of a function is its place in this list. The smallest numbers take no byte of their own in a
recording, so the most frequent functions come first. Functions of modules that are not woven have the numbers after these.
The header of each recording has the whole table: a number means what that table says. `version/0` changes when a number of
this list gets another meaning; new functions are added at the end.

**Completeness.** Every function of `erlang`, `ets`, `os`, `persistent_term`, `atomics`, `counters` and
`erts_internal` either has a row here, or needs none (`left/1`), because its result follows from its arguments and from what
the process has done. A function that a later OTP adds is in neither, and a test fails.
""".
-behaviour(witness_weave_calls).

-export([is_steered/3, steered/0, is_user/3, users/0, plan/0, plan/1, calls/0, calls/1, rows/0, added/0, version/0, class/3,
         possible/3, number/3, left/1]).

-doc "Raised when numbers of the list change their meaning.".
-spec version() -> pos_integer().
version() -> 1.

-doc """
The plan for weaving modules for recording, if only modules of the VM have native functions. `natives` has the functions that
a recording treats as native, among them `code:ensure_loaded/1`.
""".
-spec plan() -> witness_weave:plan().
plan() -> plan([]).

-doc """
The same with the modules of folders that were read: calls of modules with native functions are recorded. So is the call that
loads a module when it is needed, because the messages that a process takes for it are not the program's. So are the calls by
which a program reads data sources.
""".
-spec plan([witness_weave_objects:folder()]) -> witness_weave:plan().
plan(Folders) ->
    Natives = lists:usort([{code, ensure_loaded, 1}, {witness_record_source, answer, 2}, {witness_record_source, read, 2}]
                          ++ lists:append([Found || #{natives := Found} <- Folders])),
    #{runtime => witness_record_runtime, calls => ?MODULE, sends => replaced, timeouts => true, waits => true, references => true,
      callbacks => false,
      except => excepted(),
      natives => maps:from_list(numbered(length(listed()) + length(preloaded()), Natives))}.

%% The VM calls this module when a function is undefined. If it were woven, it would call the run-time module in order to
%% load the run-time module.
excepted() -> [error_handler].

-doc "The numbers of all calls of a plan.".
-spec calls(witness_weave:plan()) -> #{mfa() => non_neg_integer()}.
calls(#{natives := Natives}) -> maps:merge(maps:from_list(numbered(0, listed() ++ preloaded())), Natives).

-doc "The numbers of all calls of the plan without folders.".
-spec calls() -> #{mfa() => non_neg_integer()}.
calls() -> calls(plan()).

-doc "Every function that has a class in a plan without folders.".
-spec rows() -> [mfa()].
rows() -> lists:usort(maps:keys(element(1, tables())) ++ maps:keys(maps:get(natives, plan()))).

numbered(First, Calls) -> [{Call, Number} || {Number, Call} <- lists:enumerate(First, Calls)].

listed() -> [{M, F, A} || {M, Rows} <- results(), {F, Arities} <- Rows, A <- Arities].

%% Modules of the VM that cannot be woven, and do what must be recorded. Their exports, and so their numbers, depend on the
%% release of OTP.
preloaded() ->
    [{Module, F, A} || Module <- [erl_prim_loader, erts_code_purger, init, prim_buffer, prim_file, prim_inet, prim_net,
                                  prim_socket, prim_zip, socket_registry, zlib],
                       {F, A} <- lists:sort(Module:module_info(exports)), F =/= module_info].

-doc false.
-spec class(module(), atom(), arity()) -> witness_weave_calls:class() | none.
class(Module, Function, Arity) ->
    case tables() of
        {#{{Module, Function, Arity} := Class}, _} -> Class;
        _ -> none
    end.

-doc false.
-spec possible(module() | '_', atom() | '_', arity() | '_') -> boolean().
possible(Module, Function, Arity) when Module =/= '_', Function =/= '_', Arity =/= '_' ->
    class(Module, Function, Arity) =/= none orelse is_steered(Module, Function, Arity);
possible(Module, Function, Arity) ->
    witness_weave_calls:is_any({Module, Function, Arity}, maps:keys(element(1, tables()))).

-doc """
Whether a recording leaves this function alone, but a replay performs it in another way. A fun of it is a stand-in in both, so
that it is the same fun.
""".
-spec is_steered(module(), atom(), arity()) -> boolean().
is_steered(erlang, Function, Arity) -> lists:member({Function, Arity}, steered());
is_steered(Module, Function, Arity) -> is_user(Module, Function, Arity).

-doc "Whether this function takes a term that the VM has compiled (`compile_pattern` and the like), and has no row.".
-spec is_user(module(), atom(), arity()) -> boolean().
is_user(Module, Function, Arity) when Module =:= re; Module =:= binary; Module =:= ets ->
    lists:member({Module, Function, Arity}, users());
is_user(_, _, _) -> false.

-doc "The functions for which `is_user/3` is true.".
-spec users() -> [mfa()].
users() ->
    [{Module, F, A} || {Module, Rows} <- [{re, [{run, [2, 3]}, {internal_run, [4]}, {inspect, [2]}]},
                                          {binary, [{match, [2, 3]}, {matches, [2, 3]}, {split, [2, 3]}]},
                                          {ets, [{match_spec_run_r, [3]}]}],
                       {F, Arities} <- Rows, A <- Arities].

-doc "The functions of `erlang` for which `is_steered/3` is true.".
-spec steered() -> [{atom(), arity()}].
steered() ->
    [{self, 0}, {exit, 2}, {exit, 3}, {exit_signal, 2}, {exit_signal, 3}, {unlink, 1}, {demonitor, 1}, {display, 1},
     {display_string, 1},
     {display_string, 2}, {hibernate, 0}, {hibernate, 3}, {process_flag, 2}].

-doc "The number of a function of the list, whatever its class.".
-spec number(module(), atom(), arity()) -> non_neg_integer().
number(Module, Function, Arity) ->
    {_, #{{Module, Function, Arity} := Number}} = tables(),
    Number.

%% Made once. Two processes that make them at the same time make the same tables.
tables() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Listed = numbered(0, listed()),
            Preloaded = numbered(length(Listed), preloaded()),
            Classes = maps:from_list([{Call, {listed(Call), Number}} || {Call, Number} <- Listed]
                ++ [{Call, {foreign, Number}} || {Call, Number} <- Preloaded]
                ++ [{{M, F, A}, Class} || {M, Rows} <- others(), {F, Class, Arities} <- Rows, A <- Arities]),
            Tables = {Classes, maps:from_list(Listed ++ Preloaded)},
            ok = persistent_term:put(?MODULE, Tables),
            Tables;
        Tables ->
            Tables
    end.

%% For some patterns `re:compile/2' continues in Erlang, and calls itself: as `foreign', its inner calls are not recorded.
listed({Module, _, _}) when Module =:= re; Module =:= binary -> foreign;
listed(_) -> result.

%% What the recorder handles in another way. A function that spawns or sends has a number too, since some of its results are
%% recorded.
others() ->
    [{erlang,
      [{'!', send, [2]}, {send, send, [2, 3]}, {send_nosuspend, send, [2, 3]},
       {spawn, spawn, [1, 2, 3, 4]}, {spawn_link, spawn, [1, 2, 3, 4]}, {spawn_monitor, spawn, [1, 2, 3, 4]},
       {spawn_opt, spawn, [2, 3, 4, 5]}, {spawn_request, spawn, [1, 2, 3, 4, 5]},
       {get, dictionary, [0]}, {get_keys, dictionary, [0, 1]}, {erase, dictionary, [0]},
       {process_info, information, [1, 2]},
       {seq_trace, token, [2]}, {seq_trace_info, token, [1]}, {seq_trace_print, token, [1, 2]},
       {make_fun, make_fun, [3]}, {halt, halt, [0, 1, 2]}, {prepare_loading, load, [2]}, {load_module, load, [2]},
       {exit, leave, [1]}, {raise, leave, [3]}, {hibernate, hibernate, [0, 3]},
       {fun_info, digest, [1, 2]}, {term_to_binary, digest, [1, 2]}, {term_to_iovec, digest, [1, 2]},
       {binary_to_term, digest, [1, 2]}]},
     {prim_eval, [{'receive', wait, [2]}]}].

leaves() -> [{exit, [1]}, {raise, [3]}].

hibernates() -> [{hibernate, [0, 3]}].

-doc "Functions that were added to the list: older recordings have no results of them.".
-spec added() -> [mfa()].
added() -> [{M, F, A} || {M, Rows} <- [{erlang, leaves() ++ hibernates()} | compiles()], {F, Arities} <- Rows, A <- Arities].

results() ->
    [{erlang, [{monotonic_time, [0, 1]}, {make_ref, [0]}, {unique_integer, [0, 1]}, {system_time, [0, 1]},
               {monitor, [2]},
               {process_info, [2]}, {whereis, [1]}, {send_after, [3]}, {start_timer, [3]}, {cancel_timer, [1]},
               {demonitor, [2]}, {group_leader, [0]}]},
     {ets, [{lookup, [2]}, {insert, [2]}, {lookup_element, [3]}, {member, [2]}, {update_counter, [3]}, {delete, [2]}]},
     {persistent_term, [{get, [1, 2]}]},
     {atomics, [{get, [2]}, {add, [3]}]},
     {counters, [{get, [2]}, {add, [3]}]},
     %% Up to here, a number takes no byte of its own.
     {erlang, [{alias, [0, 1]}, {cancel_timer, [2]}, {check_old_code, [1]}, {check_process_code, [2, 3]}, {date, [0]},
               {dist_ctrl_get_data, [1]}, {dist_ctrl_get_data_notification, [1]}, {dist_ctrl_get_opt, [2]},
               {dist_ctrl_input_handler, [2]}, {dist_ctrl_put_data, [2]}, {dist_ctrl_set_opt, [3]},
               {dist_get_stat, [1]},
               {alloc_info, [1]}, {alloc_sizes, [1]}, {function_exported, [3]}, {garbage_collect, [1, 2]},
               {group_leader, [2]},
               {is_process_alive, [1]}, {link, [1, 2]}, {loaded, [0]}, {localtime, [0]},
               {localtime_to_universaltime, [1, 2]},
               {memory, [0, 1]}, {module_loaded, [1]}, {monitor, [3]}, {monitor_node, [2, 3]}, {nodes, [0, 1, 2]},
               {now, [0]},
               {open_port, [2]}, {port_call, [2, 3]}, {port_close, [1]}, {port_command, [2, 3]}, {port_connect, [2]},
               {port_control, [3]}, {port_get_data, [1]}, {port_info, [1, 2]}, {port_set_data, [2]}, {ports, [0]},
               {process_display, [2]}, {process_flag, [3]}, {process_info, [1]}, {processes, [0]},
               {processes_iterator, [0]},
               {processes_next, [1]}, {read_timer, [1, 2]}, {register, [2]}, {registered, [0]}, {resume_process, [1]},
               {'!', [2]}, {send, [2, 3]}, {send_after, [4]}, {send_nosuspend, [2, 3]},
               {spawn, [1, 2, 3, 4]}, {spawn_link, [1, 2, 3, 4]}, {spawn_monitor, [1, 2, 3, 4]},
               {spawn_opt, [2, 3, 4, 5]},
               {spawn_request, [1, 2, 3, 4, 5]}, {spawn_request_abandon, [1]}, {start_timer, [4]}, {statistics, [1]},
               {suspend_process, [1, 2]}, {system_flag, [2]}, {system_info, [1]}, {system_monitor, [0, 1, 2]},
               {system_profile, [0, 2]}, {time, [0]}, {time_offset, [0, 1]}, {timestamp, [0]}, {trace, [3]},
               {trace_delivered, [1]}, {trace_info, [2]}, {trace_pattern, [2, 3]}, {unalias, [1]}, {universaltime, [0]},
               {universaltime_to_localtime, [1]}, {unregister, [1]}, {dt_get_tag, [0]}, {dt_get_tag_data, [0]}]},
     {ets, [{delete, [1]}, {delete_object, [2]}, {first, [1]}, {first_lookup, [1]}, {give_away, [3]}, {info, [1, 2]},
            {insert_new, [2]}, {internal_delete_all, [2]}, {internal_request_all, [0]}, {internal_select_delete, [2]},
            {last, [1]}, {last_lookup, [1]}, {lookup_element, [4]}, {match, [1, 2, 3]}, {match_object, [1, 2, 3]},
            {match_spec_compile, [1]}, {new, [2]}, {next, [2]}, {next_lookup, [2]}, {prev, [2]}, {prev_lookup, [2]},
            {rename, [2]}, {safe_fixtable, [2]}, {select, [1, 2, 3]}, {select_count, [2]}, {select_replace, [2]},
            {select_reverse, [1, 2, 3]}, {setopts, [2]}, {slot, [2]}, {take, [2]}, {update_counter, [4]},
            {update_element, [3, 4]}, {whereis, [1]}]},
     {persistent_term, [{erase, [1]}, {get, [0]}, {info, [0]}, {put, [2]}, {put_new, [2]}]},
     {atomics, [{add_get, [3]}, {compare_exchange, [4]}, {exchange, [3]}, {info, [1]}, {new, [2]}, {put, [3]},
                {sub, [3]},
                {sub_get, [3]}]},
     {counters, [{info, [1]}, {new, [2]}, {put, [3]}, {sub, [3]}]},
     {os, [{env, [0]}, {getenv, [1]}, {getpid, [0]}, {perf_counter, [0]}, {putenv, [2]}, {set_signal, [2]},
           {system_time, [0, 1]}, {timestamp, [0]}, {unsetenv, [1]}]},
     {erts_internal,
      [{abort_pending_connection, [2]}, {atomics_new, [2]}, {await_microstate_accounting_modifications, [3]},
       {await_sched_wall_time_modifications, [2]}, {check_dirty_process_code, [2]}, {check_process_code, [1, 3]},
       {counters_add, [3]}, {counters_get, [2]}, {counters_info, [1]}, {counters_new, [1]}, {counters_put, [3]},
       {create_dist_channel, [3]}, {dirty_process_handle_signals, [1]}, {dist_ctrl_put_data, [2]},
       {dist_spawn_request, [4]},
       {dynamic_node_name, [0, 1]}, {erase_persistent_terms, [0]}, {ets_info_binary, [1]},
       {ets_lookup_binary_info, [2]},
       {ets_raw_first, [1]}, {ets_raw_next, [2]}, {ets_super_user, [1]}, {garbage_collect, [1]},
       {gather_alloc_histograms, [1]}, {gather_carrier_info, [1]}, {gather_io_bytes, [2]},
       {gather_microstate_accounting_result, [2]}, {gather_sched_wall_time_result, [1]},
       {gather_system_check_result, [1]},
       {get_creation, [0]}, {get_internal_state_blocked, [1]}, {group_leader, [2, 3]}, {is_process_alive, [1, 2]},
       {is_process_executing_dirty, [1]}, {is_system_process, [1]}, {new_connection, [1]}, {no_aux_work_threads, [0]},
       {notify_breakpoint_hit, [3]}, {open_port, [2]}, {perf_counter_unit, [0]}, {port_call, [3]}, {port_close, [1]},
       {port_command, [3]}, {port_connect, [2]}, {port_control, [3]}, {port_info, [1, 2]}, {process_display, [2]},
       {process_flag, [3]}, {processes_next, [1]}, {request_system_task, [3, 4]}, {scheduler_wall_time, [1]},
       {spawn_request, [4]}, {spawn_system_process, [3]}, {suspend_process, [2]}, {system_check, [1]},
       {system_flag_scheduler_wall_time, [1]}, {system_monitor, [1, 3]}, {trace, [3, 4]}, {trace_info, [3]},
       {trace_pattern, [3, 4]}, {trace_session_create, [3]}, {trace_session_destroy, [1]}]},
     {erl_ddll, [{demonitor, [1]}, {info, [2]}, {loaded_drivers, [0]}, {monitor, [2]}, {try_load, [3]},
     {try_unload, [2]}]},
     {erts_debug, [{get_internal_state, [1]}, {lcnt_collect, [0]}, {set_internal_state, [2]}]},
     {erlang, leaves()},
     {erlang, hibernates()} | compiles()].

%% They return a reference to memory of the VM, or check that it is there.
compiles() -> [{re, [{compile, [1, 2]}]}, {binary, [{compile_pattern, [1]}]}, {ets, [{is_compiled_ms, [1]}]}].

-doc """
The functions of this module that are left as they are, for one of these reasons:

- Their result follows from their arguments and from what the process has done: arithmetic, conversions, the process's own
  dictionary.
- They do not return, or always have the same result.
- They load code, which a replay does again.
- They are written in Erlang and only call functions that are woven, or have a row: `ets:tab2list/1`,
  `erlang:get_cookie/0`.
""".
-spec left(module()) -> [{atom(), [arity()]}].
left(erlang) ->
    [{'*', [2]}, {'+', [1, 2]}, {'++', [2]}, {'-', [1, 2]}, {'--', [2]}, {'/', [2]}, {'/=', [2]}, {'<', [2]},
     {'=/=', [2]},
     {'=:=', [2]}, {'=<', [2]}, {'==', [2]}, {'>', [2]}, {'>=', [2]}, {abs, [1]}, {adler32, [1, 2]},
     {adler32_combine, [3]},
     {'and', [2]}, {append, [2]}, {append_element, [2]}, {apply, [2, 3]}, {atom_to_binary, [1, 2]}, {atom_to_list, [1]},
     {'band', [2]}, {binary_part, [2, 3]}, {binary_to_atom, [1, 2]}, {binary_to_existing_atom, [1, 2]},
     {binary_to_float, [1]},
     {binary_to_integer, [1, 2]}, {binary_to_list, [1, 3]}, {bit_size, [1]},
     {bitstring_to_list, [1]},
     {'bnot', [1]}, {'bor', [2]}, {'bsl', [2]}, {'bsr', [2]}, {bump_reductions, [1]}, {'bxor', [2]}, {byte_size, [1]},
     {call_on_load_function, [1]}, {ceil, [1]}, {convert_time_unit, [3]}, {crc32, [1, 2]}, {crc32_combine, [3]},
     {decode_packet, [3]}, {delay_trap, [2]}, {delete_element, [2]}, {delete_module, [1]}, {demonitor, [1]},
     {disconnect_node, [1]}, {display, [1]}, {display_string, [1, 2]}, {'div', [2]}, {dmonitor_node, [3]},
     {dt_append_vm_tag_data, [1]}, {dt_prepend_vm_tag_data, [1]}, {dt_put_tag, [1]}, {dt_restore_tag, [1]},
     {dt_spread_tag, [1]}, {element, [2]}, {erase, [1]}, {error, [1, 2, 3]}, {exit, [2, 3]}, {exit_signal, [2, 3]},
     {external_size, [1, 2]}, {finish_after_on_load, [2]}, {finish_loading, [1]}, {float, [1]},
     {float_to_binary, [1, 2]},
     {float_to_list, [1, 2]}, {floor, [1]}, {format_cpu_topology, [1]}, {fun_info_mfa, [1]},
     {fun_to_list, [1]}, {garbage_collect, [0]}, {garbage_collect_message_area, [0]}, {gather_gc_info_result, [1]},
     {get, [1]},
     {get_cookie, [0, 1]}, {get_module_info, [1, 2]}, {has_prepared_code_on_load, [1]}, {hd, [1]},
     {insert_element, [3]}, {integer_to_binary, [1, 2]}, {integer_to_list, [1, 2]}, {iolist_size, [1]},
     {iolist_to_binary, [1]},
     {iolist_to_iovec, [1]}, {is_alive, [0]}, {is_atom, [1]}, {is_binary, [1]}, {is_bitstring, [1]}, {is_boolean, [1]},
     {is_builtin, [3]}, {is_float, [1]}, {is_function, [1, 2]}, {is_integer, [1, 3]}, {is_list, [1]}, {is_map, [1]},
     {is_map_key, [2]}, {is_number, [1]}, {is_pid, [1]}, {is_port, [1]}, {is_record, [1, 2, 3]}, {is_reference, [1]},
     {is_tuple, [1]}, {length, [1]}, {list_to_atom, [1]}, {list_to_binary, [1]}, {list_to_bitstring, [1]},
     {list_to_existing_atom, [1]}, {list_to_float, [1]}, {list_to_integer, [1, 2]}, {list_to_pid, [1]},
     {list_to_port, [1]},
     {list_to_ref, [1]}, {list_to_tuple, [1]}, {load_nif, [2]}, {make_tuple, [2, 3]},
     {map_get, [2]},
     {map_size, [1]}, {match_spec_test, [3]}, {max, [2]}, {md5, [1]}, {md5_final, [1]}, {md5_init, [0]},
     {md5_update, [2]},
     {min, [2]}, {module_info, [0, 1]}, {nif_error, [1, 2]}, {node, [0, 1]}, {'not', [1]}, {'or', [2]}, {phash, [2]},
     {phash2, [1, 2]}, {pid_to_list, [1]}, {port_to_list, [1]}, {posixtime_to_universaltime, [1]}, {pre_loaded, [0]},
     {process_flag, [2]}, {purge_module, [1]}, {put, [2]}, {ref_to_list, [1]},
     {'rem', [2]},
     {round, [1]}, {self, [0]}, {set_cookie, [1, 2]}, {set_cpu_topology, [1]}, {setelement, [3]}, {setnode, [2, 3]},
     {size, [1]},
     {split_binary, [2]}, {subtract, [2]}, {throw, [1]}, {tl, [1]},
     {trunc, [1]}, {tuple_size, [1]}, {tuple_to_list, [1]}, {universaltime_to_posixtime, [1]}, {unlink, [1]},
     {'xor', [2]},
     {yield, [0]}];
left(ets) ->
    [{all, [0]}, {delete_all_objects, [1]}, {file2tab, [1, 2]}, {foldl, [3]}, {foldr, [3]}, {from_dets, [2]},
     {fun2ms, [1]},
     {i, [0, 1, 2, 3]}, {init_table, [2]}, {match_delete, [2]}, {match_spec_run, [2]},
     {match_spec_run_r, [3]}, {module_info, [0, 1]}, {repair_continuation, [2]}, {select_delete, [2]},
     {tab2file, [2, 3]},
     {tab2list, [1]}, {tabfile_info, [1]}, {table, [1, 2]}, {test_ms, [2]}, {to_dets, [2]}];
left(os) ->
    [{cmd, [1, 2]}, {find_executable, [1, 2]}, {getenv, [0, 2]}, {internal_init_cmd_shell, [0]}, {module_info, [0, 1]},
     {perf_counter, [1]}, {type, [0]}, {version, [0]}];
left(erts_internal) ->
    [{'@flush_monitor_messages_refopt', [0]}, {await_port_send_result, [3]}, {await_result, [1]}, {beamfile_chunk, [2]},
     {beamfile_module_md5, [1]}, {binary_to_integer, [2]}, {breakpoint, [4]}, {cmp_term, [2]}, {crasher, [6]},
     {dist_spawn_init, [1]}, {flush_monitor_messages, [3]}, {get_dflags, [0]}, {list_to_integer, [2]},
     {map_hashmap_children, [1]}, {map_next, [3]}, {map_to_tuple_keys, [1]}, {mc_iterator, [1]}, {mc_refill, [1]},
     {module_info, [0, 1]}, {prepare_loading, [2]}, {purge_module, [2]}, {set_code_and_literal_cleaner_prio, [1]},
     {spawn_init, [1]}, {term_to_string, [1, 2]}, {term_type, [1]}, {time_unit, [0]},
     {wait_release_literal_area_switch, [1]}];
left(Module) when Module =:= persistent_term; Module =:= atomics; Module =:= counters ->
    [{module_info, [0, 1]}].
