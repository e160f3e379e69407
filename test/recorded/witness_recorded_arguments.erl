-module(witness_recorded_arguments).
-moduledoc """
Arguments with which the calls of the table of recorded calls succeed, for a program that calls each of them. Those with
which they fail are the same for all.

An entry is `{Value, Function, Args}`, or `{Value, Function, Arity, fun(() -> Args)}` where something has to be there first. `Value`
says what is the same in every run: `same`, the value; `kind`, what kind of term it is; `some`, that there is one;
`handle`, a handle of the VM in which it is made, also in a replay. The process that calls has made the
arguments, and what it can see afterwards is what the call has done (`seen/1`).
""".
-export([entries/1, failing/1, only_failing/0, never/0, is_called/1, stack/1, seen/1]).
-export([stays/1, child/1, told/2]).

-import(witness_recorded_calls, [expect/1, expect_own/1, messages/0]).

-define(NAME, witness_arguments_name).
-define(TABLE, witness_arguments_table).
-define(ENV, "WITNESS_ARGUMENTS").

%% --- what is called --------------------------------------------------------------

-doc "The entries of a module.".
entries(erlang) ->
    [{kind, monotonic_time, []}, {kind, monotonic_time, [second]}, {kind, make_ref, []}, {kind, unique_integer, []},
     {kind, unique_integer, [[monotonic, positive]]}, {kind, system_time, []}, {kind, system_time, [second]},
     {kind, timestamp, []}, {kind, now, []}, {kind, date, []}, {kind, time, []}, {kind, localtime, []}, {kind, universaltime, []},
     {kind, time_offset, []}, {kind, time_offset, [second]},
     {same, localtime_to_universaltime, [{{2024, 2, 3}, {4, 5, 6}}]},
     {same, localtime_to_universaltime, [{{2024, 2, 3}, {4, 5, 6}}, false]},
     {same, universaltime_to_localtime, [{{2024, 2, 3}, {4, 5, 6}}]},
     {kind, monitor, 2, fun() -> [process, waiting()] end}, {kind, monitor, 3, fun() -> [process, waiting(), [{tag, tag}]] end},
     {same, demonitor, 2, fun() -> [monitor(process, waiting()), [flush, info]] end},
     {kind, alias, []}, {kind, alias, [[reply]]}, {same, unalias, 1, fun() -> [alias()] end},
     {same, whereis, 1, fun() -> named(), [?NAME] end}, {same, whereis, [?NAME]},
     {same, register, 2, fun() -> unnamed(), [?NAME, self()] end}, {same, unregister, 1, fun() -> named(), [?NAME] end},
     {kind, registered, []},
     {kind, send_after, [100_000, self, m]}, {kind, send_after, 4, fun() -> [100_000, self(), m, []] end},
     {kind, start_timer, [100_000, self, m]}, {kind, start_timer, 4, fun() -> [100_000, self(), m, []] end},
     {kind, cancel_timer, 1, fun timer/0}, {same, cancel_timer, 2, fun() -> timer() ++ [[{info, false}]] end},
     {kind, read_timer, 1, fun timer/0}, {kind, read_timer, 2, fun() -> timer() ++ [[{async, false}]] end},
     {same, group_leader, []}, {same, group_leader, 2, fun() -> [group_leader(), self()] end},
     {same, check_old_code, [lists]}, {same, check_process_code, 2, fun() -> [self(), lists] end},
     {same, check_process_code, 3, fun() -> [self(), lists, [{async, false}]] end},
     {same, function_exported, [lists, map, 2]}, {same, module_loaded, [lists]}, {kind, loaded, []},
     {same, garbage_collect, 1, fun() -> [self()] end}, {same, garbage_collect, 2, fun() -> [self(), [{type, minor}]] end},
     {same, is_process_alive, 1, fun() -> [waiting()] end}, {same, is_process_alive, 1, fun() -> [self()] end},
     {same, link, 1, fun() -> [waiting()] end}, {same, link, 2, fun() -> [waiting(), []] end},
     {kind, memory, []}, {kind, memory, [total]}, {kind, alloc_info, [[temp_alloc]]}, {kind, alloc_sizes, [[temp_alloc]]},
     {same, nodes, []}, {same, nodes, [hidden]}, {same, nodes, [connected, #{}]},
     {same, open_port, [{spawn, "cat"}, []]}, {same, port_close, 1, fun port/0},
     {same, port_command, 2, fun() -> port() ++ [<<>>] end}, {same, port_command, 3, fun() -> port() ++ [<<>>, [nosuspend]] end},
     {same, port_connect, 2, fun() -> port() ++ [self()] end}, {same, port_get_data, 1, fun port_data/0},
     {same, port_set_data, 2, fun() -> port() ++ [data] end}, {kind, port_info, 1, fun port/0},
     {same, port_info, 2, fun() -> port() ++ [name] end}, {kind, ports, []},
     {same, process_flag, 3, fun() -> [self(), save_calls, 0] end},
     {kind, process_info, 1, fun() -> [waiting()] end}, {same, process_info, 2, fun() -> [waiting(), trap_exit] end},
     {same, process_info, 2, fun() -> [self(), [links, message_queue_len]] end},
     {kind, processes, []}, {kind, processes_iterator, []}, {kind, processes_next, 1, fun() -> [erlang:processes_iterator()] end},
     {same, suspend_process, 1, fun() -> [waiting()] end},
     {same, suspend_process, 2, fun() -> [waiting(), [unless_suspending]] end},
     {same, '!', 2, fun() -> [self(), m] end}, {same, '!', 2, fun() -> named(), [?NAME, m] end}, {same, '!', [?NAME, m]},
     {same, '!', 2, fun() -> [alias(), m] end}, {same, '!', [{?NAME, nonode@nohost}, m]},
     {same, send, 2, fun() -> [self(), m] end}, {same, send, 2, fun() -> named(), [?NAME, m] end}, {same, send, [?NAME, m]},
     {same, send, 2, fun() -> named(), [{?NAME, node()}, m] end}, {same, send, [{?NAME, nonode@nohost}, m]},
     {same, send, 2, fun() -> [alias(), m] end}, {same, send, 2, fun() -> [ended(), m] end}, {same, send, [{?NAME, 'a@b'}, m]},
     {same, send, 3, fun() -> [self(), m, []] end}, {same, send, 3, fun() -> named(), [?NAME, m, [noconnect]] end},
     {same, send, 3, fun() -> [self(), m, [nosuspend, noconnect]] end}, {same, send, 3, fun() -> [self(), m, [other]] end},
     {same, send, 3, fun() -> [self(), m, none] end}, {same, send, [?NAME, m, []]}, {same, send, [?NAME, m, [other]]},
     {same, send, 3, fun() -> named(), [?NAME, m, [other]] end}, {same, send, [{?NAME, 'a@b'}, m, [noconnect]]},
     {same, send, 3, fun() -> port() ++ [{self(), {command, ""}}, [nosuspend]] end},
     {same, send_nosuspend, 2, fun() -> [self(), m] end}, {same, send_nosuspend, 2, fun() -> named(), [?NAME, m] end},
     {same, send_nosuspend, [?NAME, m]}, {same, send_nosuspend, [{?NAME, nonode@nohost}, m]},
     {same, send_nosuspend, [{?NAME, 'a@b'}, false]}, {same, send_nosuspend, 2, fun() -> [self(), true] end},
     {same, send_nosuspend, 3, fun() -> [self(), m, []] end}, {same, send_nosuspend, 3, fun() -> [self(), m, [other]] end},
     {same, send_nosuspend, 3, fun() -> [ended(), m, [noconnect]] end}, {same, send_nosuspend, [{?NAME, 'a@b'}, m, [noconnect]]},
     {same, spawn, 1, fun() -> [child()] end}, {same, spawn, 2, fun() -> [node(), child()] end}, {same, spawn, 3, fun child_mfa/0},
     {same, spawn, 3, fun() -> expect(1), [?MODULE, told, [self(), m]] end}, {same, spawn, 4, fun() -> [node() | child_mfa()] end},
     {same, spawn, 4, fun() -> ['a@b' | child_mfa()] end},
     {same, spawn_link, 1, fun() -> [child()] end}, {same, spawn_link, 2, fun() -> [node(), child()] end},
     {same, spawn_link, 3, fun child_mfa/0}, {same, spawn_link, 4, fun() -> [node() | child_mfa()] end},
     {kind, spawn_monitor, 1, fun() -> [child()] end}, {kind, spawn_monitor, 2, fun() -> [node(), child()] end},
     {kind, spawn_monitor, 3, fun child_mfa/0}, {kind, spawn_monitor, 4, fun() -> [node() | child_mfa()] end},
     {same, spawn_opt, 2, fun() -> [child(), []] end}, {same, spawn_opt, 3, fun() -> [node(), child(), []] end},
     {same, spawn_opt, 4, fun() -> child_mfa() ++ [[link]] end},
     {same, spawn_opt, 5, fun() -> [node() | child_mfa()] ++ [[monitor]] end},
     {same, spawn_opt, 4, fun() -> child_mfa() ++ [[other]] end},
     {kind, spawn_request, 1, fun() -> [child()] end}, {kind, spawn_request, 2, fun() -> [child(), [{reply, no}]] end},
     {kind, spawn_request, 3, fun child_mfa/0}, {kind, spawn_request, 4, fun() -> child_mfa() ++ [[{reply, no}]] end},
     {kind, spawn_request, 5, fun() -> [node() | child_mfa()] ++ [[{reply, no}]] end},
     {kind, spawn_request, 3, fun() -> [node(), child(), []] end},
     {same, spawn_request_abandon, 1, fun() -> [make_ref()] end},
     {kind, statistics, [reductions]}, {same, system_flag, 2, fun() -> [backtrace_depth, 60] end},
     {same, system_info, [otp_release]},
     {kind, system_info, [process_count]}, {same, system_monitor, []}, {same, system_monitor, [undefined]},
     {same, system_profile, []},
     {same, resume_process, 1, fun() -> P = waiting(), erlang:suspend_process(P), [P] end},
     {same, trace_delivered, 1, fun() -> expect_own(1), [ended()] end}, {same, trace_info, 2, fun() -> [self(), flags] end},
     {same, trace_pattern, [{lists, nothing, 0}, false]}, {same, trace_pattern, [{lists, nothing, 0}, false, [local]]},
     {same, trace, 3, fun() -> [waiting(), false, [send]] end},
     {same, dt_get_tag, []}, {same, dt_get_tag_data, []},
     {same, get, []}, {same, get, 0, fun() -> put(k, v), [] end}, {same, get_keys, []}, {same, get_keys, [nothing]},
     {same, erase, 0, fun() -> put(k, v), [] end},
     {same, seq_trace, [label, 1]}, {same, seq_trace_info, [label]}, {same, seq_trace_print, [m]}, {same, seq_trace_print, [0, m]},
     {same, make_fun, [lists, map, 2]}, {same, make_fun, [ets, lookup, 2]},
     {same, fun_info, [fun ?MODULE:child/1]}, {same, fun_info, [fun ?MODULE:child/1, arity]},
     {same, term_to_binary, [{a, 1}]}, {same, term_to_binary, [{a, 1}, [compressed]]},
     {same, term_to_iovec, [{a, 1}]}, {same, term_to_iovec, [{a, 1}, [deterministic]]},
     {same, binary_to_term, [term_to_binary({a, 1})]}, {same, binary_to_term, [term_to_binary({a, 1}), [safe]]},
     {same, exit, [normal]}, {same, exit, [ended]}, {same, raise, [exit, ended, []]}, {same, raise, [exit, normal, []]},
     {same, raise, [throw, thrown, []]}, {same, raise, [error, failed, []]}, {same, raise, [other, failed, []]}];
entries(ets) ->
    [{same, lookup, 2, with([1])}, {same, insert, 2, with([{4, d}])}, {same, insert, 2, with([[{4, d}, {5, e}]])},
     {same, lookup_element, 3, with([1, 2])}, {same, lookup_element, 3, with([9, 2])},
     {same, lookup_element, 4, with([9, 2, none])},
     {same, member, 2, with([1])}, {same, update_counter, 3, with([3, 2])}, {same, update_counter, 3, with([1, 2])},
     {same, update_counter, 4, with([9, 1, {9, 0}])}, {same, delete, 1, with([])}, {same, delete, 2, with([1])},
     {same, delete_object, 2, with([{1, a}])}, {same, first, 1, with([])}, {same, first_lookup, 1, with([])},
     {same, give_away, 3, fun() -> [table(), waiting(), gift] end}, {kind, info, 1, with([])}, {same, info, 2, with([size])},
     {same, insert_new, 2, with([{1, x}])}, {same, insert_new, 2, with([{9, x}])},
     {same, internal_delete_all, 2, with([undefined])},
     {same, internal_select_delete, 2, with([[{{1, '_'}, [], [true]}]])},
     {same, last, 1, with([])}, {same, last_lookup, 1, with([])},
     {same, match, 1, continued(fun ets:match/3, {'$1', '_'})}, {same, match, 2, with([{'$1', a}])},
     {same, match, 3, one(with([{'$1', '_'}, 1]))},
     {same, match_object, 1, continued(fun ets:match_object/3, {'_', '_'})},
     {same, match_object, 2, with([{'_', a}])}, {same, match_object, 3, one(with([{'_', '_'}, 1]))},
     {handle, match_spec_compile, [[{{'_', '_'}, [], ['$_']}]]}, {same, is_compiled_ms, 1, fun() -> [make_ref()] end},
     {same, is_compiled_ms, 1, fun() -> [ets:match_spec_compile([{{'_', '_'}, [], ['$_']}])] end},
     {same, new, 2, fun() -> without_table(), [?TABLE, [named_table]] end}, {same, new, [t, []]},
     {same, new, 2, fun() -> _ = table(), [?TABLE, [named_table]] end},
     {same, next, 2, with([1])}, {same, next_lookup, 2, with([1])}, {same, prev, 2, with([2])}, {same, prev_lookup, 2, with([2])},
     {same, rename, 2, with([witness_arguments_renamed])}, {same, safe_fixtable, 2, with([true])},
     {same, select, 1, continued(fun ets:select/3, all())}, {same, select, 2, with([all()])},
     {same, select, 3, one(with([all(), 1]))},
     {same, select_count, 2, with([[{{'_', '_'}, [], [true]}]])},
     {same, select_replace, 2, with([[{{'$1', a}, [], [{{'$1', z}}]}]])},
     {same, select_reverse, 1, continued(fun ets:select_reverse/3, all())}, {same, select_reverse, 2, with([all()])},
     {same, select_reverse, 3, one(with([all(), 1]))}, {same, setopts, 2, with([[]])}, {same, slot, 2, with([0])},
     {same, take, 2, with([1])}, {same, update_element, 3, with([1, {2, z}])}, {same, update_element, 4, with([9, {2, z}, {9, y}])},
     {kind, whereis, 1, fun() -> _ = table(), [?TABLE] end}, {same, whereis, [nothing]}];
entries(re) -> [{handle, compile, ["a+"]}, {handle, compile, ["a+", [unicode]]}];
entries(binary) -> [{handle, compile_pattern, [<<"a">>]}];
entries(persistent_term) ->
    [{same, get, 1, fun term/0}, {same, get, 2, fun() -> term() ++ [none] end}, {same, get, [witness_arguments_none, none]},
     {same, get, [witness_arguments_none]}, {kind, get, []}, {kind, info, []}, {same, erase, 1, fun term/0},
     {same, put, [?NAME, value]}, {same, put_new, 2, fun() -> _ = persistent_term:erase(?NAME), [?NAME, value] end},
     {same, put_new, 2, fun() -> term() ++ [another] end}];
entries(atomics) ->
    [{same, get, 2, number([])}, {same, add, 3, number([2])}, {same, add_get, 3, number([2])},
     {same, compare_exchange, 4, number([7, 8])}, {same, exchange, 3, number([8])},
     {kind, info, 1, fun() -> [atomics:new(2, [])] end},
     {same, new, [2, []]}, {same, put, 3, number([8])}, {same, sub, 3, number([2])}, {same, sub_get, 3, number([2])}];
entries(counters) ->
    [{same, get, 2, counter([])}, {same, add, 3, counter([2])}, {kind, info, 1, fun() -> [counters:new(2, [])] end},
     {kind, new, [2, []]}, {kind, new, [2, [write_concurrency]]}, {same, put, 3, counter([8])}, {same, sub, 3, counter([2])}];
entries(os) ->
    [{kind, env, []}, {same, getenv, 1, fun() -> true = os:putenv(?ENV, "1"), [?ENV] end},
     {same, getenv, ["WITNESS_ARGUMENTS_NONE"]},
     {kind, getpid, []}, {kind, perf_counter, []}, {same, putenv, [?ENV, "2"]}, {same, set_signal, [sigchld, default]},
     {kind, system_time, []}, {kind, system_time, [second]}, {kind, timestamp, []}, {same, unsetenv, [?ENV]}];
entries(erts_internal) ->
    [{kind, atomics_new, [1, 0]}, {kind, counters_new, [1]},
     {same, counters_get, 2, fun() -> {_, C} = counters:new(2, [write_concurrency]), [C, 1] end},
     {same, counters_add, 3, fun() -> {_, C} = counters:new(2, [write_concurrency]), [C, 1, 2] end},
     {same, counters_put, 3, fun() -> {_, C} = counters:new(2, [write_concurrency]), [C, 1, 2] end},
     {kind, counters_info, 1, fun() -> {_, C} = counters:new(2, [write_concurrency]), [C] end},
     {same, dynamic_node_name, []}, {kind, get_creation, []}, {same, is_process_executing_dirty, 1, fun() -> [self()] end},
     {same, is_system_process, 1, fun() -> [self()] end}, {same, is_process_alive, 1, fun() -> [self()] end},
     {kind, no_aux_work_threads, []}, {kind, perf_counter_unit, []}, {same, garbage_collect, [major]},
     %% If the port is busy, the result is a reference, and the answer is a message.
     {some, port_info, 2, fun() -> port() ++ [name] end}, {some, port_info, 1, fun port/0},
     {kind, ets_info_binary, 1, with([])}, {kind, ets_lookup_binary_info, 2, with([1])}, {same, ets_raw_first, 1, with([])},
     {same, ets_raw_next, 2, with([1])}, {kind, system_check, [schedulers]}, {kind, processes_next, 1, fun() -> [0] end}];
entries(erl_ddll) ->
    [{kind, loaded_drivers, []}, {same, info, ["ram_file_drv", processes]}, {same, try_load, [".", "witness_arguments_none", []]},
     {same, try_unload, ["witness_arguments_none", []]}];
entries(erts_debug) -> [{same, lcnt_collect, []}];
entries(prim_eval) ->
    [{same, 'receive', [fun ?MODULE:child/1, 0]}, {same, 'receive', 2, fun() -> self() ! m, [fun ?MODULE:child/1, 0] end}];
entries(prim_file) ->
    [{kind, get_cwd, []}, {same, read_file, 1, file([])}, {same, list_dir, ["/nothing/there"]}, {same, delete, 1, file([])},
     {same, read_link, 1, file([])}, {kind, read_file_info, 1, file([])}, {same, is_translatable, [<<"a">>]},
     {same, make_dir, ["/nothing/there"]}, {same, write_file, 2, file(["more"])}, {same, rename, ["/nothing/a", "/nothing/b"]},
     {kind, open, 2, file([[read]])}, {same, internal_name2native, ["a"]}, {same, internal_native2name, [<<"a">>]},
     {same, internal_normalize_utf8, [<<"a">>]}, {same, read_line, 1, opened([])}, {same, read, 2, opened([3])},
     {same, pread, 3, opened([0, 3])}, {same, pread, 2, opened([[{0, 3}]])}, {same, position, 2, opened([1])},
     {same, close, 1, opened([])}, {same, write, 2, opened(["x"])}, {same, pwrite, 3, opened([0, "x"])},
     {same, pwrite, 2, opened([[{0, "x"}]])}, {same, sync, 1, opened([])}, {same, datasync, 1, opened([])},
     {same, truncate, 1, opened([])}, {same, advise, 4, opened([0, 0, normal])}, {kind, get_handle, 1, opened([])},
     {same, del_dir, ["/nothing/there"]}, {same, altname, ["/nothing/there"]}, {same, list_dir_all, ["/nothing/there"]},
     {kind, read_file_info, 2, file([[{time, posix}]])}, {kind, read_link_info, 1, file([])},
     {kind, read_link_info, 2, file([[{time, posix}]])}, {kind, read_handle_info, 1, opened([])},
     {kind, read_handle_info, 2, opened([[{time, posix}]])}, {same, read_link_all, 1, file([])},
     {same, make_link, ["/nothing/a", "/nothing/b"]}, {same, make_symlink, ["a", "/nothing/b"]},
     {same, set_cwd, ["/nothing/there"]}, {same, allocate, 3, opened([0, 10])},
     {same, ipread_s32bu_p32bu, 3, opened([0, 4])}, {same, copy, 3, fun() -> F = hd((opened([]))()), [F, F, 0] end}];
entries(prim_buffer) ->
    [{kind, new, []}, {same, write, 2, buffer([[<<"more">>]])}, {same, read, 2, buffer([2])}, {same, size, 1, buffer([])},
     {same, find_byte_index, 2, buffer([$b])}, {same, skip, 2, buffer([1])}, {same, wipe, 1, buffer([])},
     {same, read_iovec, 2, buffer([2])}, {same, try_lock, 1, buffer([])},
     {same, unlock, 1, fun() -> [B] = (buffer([]))(), prim_buffer:try_lock(B), [B] end}];
entries(zlib) ->
    [{kind, open, []}, {same, close, 1, fun() -> [zlib:open()] end}, {same, compress, ["text"]}, {same, zip, ["text"]},
     {same, gzip, ["text"]}, {same, uncompress, 1, fun() -> [zlib:compress("text")] end},
     {same, unzip, 1, fun() -> [zlib:zip("text")] end},
     {same, gunzip, 1, fun() -> [zlib:gzip("text")] end}, {same, deflateInit, 1, fun() -> [zlib:open()] end},
     {same, deflateInit, 2, fun() -> [zlib:open(), default] end},
     {same, deflateInit, 6, fun() -> [zlib:open(), default, deflated, 15, 8, default] end},
     {same, deflate, 2, deflating(["text"])}, {same, deflate, 3, deflating(["text", finish])}, {same, deflateEnd, 1, deflating([])},
     {same, deflateReset, 1, deflating([])}, {same, deflateParams, 3, deflating([best_speed, default])},
     {kind, deflateSetDictionary, 2, deflating(["text"])}, {same, inflateInit, 1, fun() -> [zlib:open()] end},
     {same, inflateInit, 2, fun() -> [zlib:open(), 15] end}, {same, inflateInit, 3, fun() -> [zlib:open(), 15, cut] end},
     {same, inflate, 2, inflating([zlib:compress("text")])}, {same, inflate, 3, inflating([zlib:compress("text"), []])},
     {same, inflateReset, 1, inflating([])}, {same, safeInflate, 2, inflating([zlib:compress("text")])},
     {same, inflateGetDictionary, 1, inflating([])},
     {same, inflateEnd, 1, fun() -> [Z] = (inflating([]))(), _ = zlib:inflate(Z, zlib:compress("text")), [Z] end},
     {same, set_controlling_process, 2, fun() -> [zlib:open(), self()] end}];
entries(init) ->
    [{same, archive_extension, []}, {same, objfile_extension, []}, {same, code_path_choice, []}, {same, get_argument, [nothing]},
     {kind, get_arguments, []}, {kind, get_plain_arguments, []}, {kind, get_status, []}, {kind, script_id, []},
     {kind, script_name, []},
     {kind, fetch_loaded, []}, {same, ensure_loaded, [lists]}, {same, notify_when_started, 1, fun() -> [self()] end},
     {kind, get_configfd, [0]}];
entries(erl_prim_loader) ->
    [{kind, get_cwd, []}, {same, is_basename, ["a"]}, {same, list_dir, ["/nothing/there"]}, {same, read_file, ["/nothing/there"]},
     {same, read_file_info, ["/nothing/there"]}, {same, read_link_info, ["/nothing/there"]}, {same, get_file, ["/nothing/there"]},
     {kind, get_path, []}, {same, purge_archive_cache, []}];
entries(erts_code_purger) -> [{same, purge, [witness_arguments_none]}, {same, soft_purge, [witness_arguments_none]}];
entries(prim_net) -> [{kind, gethostname, []}, {kind, if_names, []}, {kind, info, []}, {same, if_name2index, ["nothing"]}];
entries(prim_socket) ->
    [{kind, info, []}, {kind, supports, []}, {same, is_supported, [ipv6]}, {kind, supports, [options]}, {same, supports, [nothing]},
     {kind, open, [inet, stream, tcp, #{}]}, {kind, close, 1, fun socket/0}, {kind, sockname, 1, fun socket/0},
     {same, peername, 1, fun socket/0}];
entries(prim_inet) ->
    [{kind, open, [tcp, inet, stream]}, {same, close, 1, fun inet/0}, {kind, getopts, 2, fun() -> inet() ++ [[active]] end},
     {same, getopt, 2, fun() -> inet() ++ [nodelay] end}, {same, setopt, 3, fun() -> inet() ++ [nodelay, true] end},
     {same, setopts, 2, fun() -> inet() ++ [[{nodelay, true}]] end}, {same, sockname, 1, fun inet/0},
     {same, peername, 1, fun inet/0},
     {same, gettype, 1, fun inet/0}, {same, listen, 1, fun inet/0}, {same, getstatus, 1, fun inet/0},
     {same, getindex, 1, fun inet/0},
     {kind, bind, 3, fun() -> inet() ++ [{127, 0, 0, 1}, 0] end}, {kind, getfd, 1, fun inet/0}, {kind, gethostname, 1, fun inet/0}];
entries(socket_registry) -> [{kind, number_of, []}, {kind, number_of_monitors, []}];
entries(code) -> [{same, ensure_loaded, [lists]}, {same, ensure_loaded, [witness_arguments_none]}];
entries(_) -> [].

with(Args) -> fun() -> [table() | Args] end.

%% Which object comes first follows from the table's order.
one(Made) -> Made.

continued(Select, Pattern) -> fun() -> {_, Next} = Select(table(), Pattern, 1), [Next] end.

all() -> [{{'_', '_'}, [], ['$_']}].

number(Args) -> fun() -> A = atomics:new(2, []), ok = atomics:put(A, 1, 7), [A, 1 | Args] end.

counter(Args) -> fun() -> C = counters:new(2, []), ok = counters:put(C, 1, 7), [C, 1 | Args] end.

term() ->
    ok = persistent_term:put(?NAME, value),
    [?NAME].

%% Ordered, so that what is first and what is next is the same everywhere.
table() ->
    without_table(),
    ?TABLE = ets:new(?TABLE, [named_table, public, ordered_set]),
    true = ets:insert(?TABLE, [{1, a}, {2, a}, {3, 3}]),
    ?TABLE.

without_table() -> _ = [ets:delete(?TABLE) || ets:whereis(?TABLE) =/= undefined].

%% Lives as long as the process that has made it.
waiting() ->
    Owner = self(),
    spawn(fun() -> stays(Owner) end).

ended() ->
    {Pid, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Pid, _} -> Pid end.

named() ->
    unnamed(),
    true = register(?NAME, self()).

unnamed() -> _ = [unregister(?NAME) || whereis(?NAME) =/= undefined].

timer() -> [erlang:send_after(100_000, self(), m)].

port() -> [open_port({spawn, "cat"}, [])].

port_data() ->
    [Port] = port(),
    true = erlang:port_set_data(Port, data),
    [Port].

name() -> filename:join(os:getenv("WITNESS_ARGUMENTS_DIR"), "file").

file(Args) ->
    fun() ->
        ok = file:write_file(name(), "content\n"),
        [name() | Args]
    end.

opened(Args) ->
    fun() ->
        ok = file:write_file(name(), "content\n"),
        {ok, File} = prim_file:open(name(), [read, write, binary]),
        [File | Args]
    end.

buffer(Args) ->
    fun() ->
        Buffer = prim_buffer:new(),
        ok = prim_buffer:write(Buffer, [<<"abc">>]),
        [Buffer | Args]
    end.

deflating(Args) ->
    fun() ->
        Z = zlib:open(),
        ok = zlib:deflateInit(Z),
        [Z | Args]
    end.

inflating(Args) ->
    fun() ->
        Z = zlib:open(),
        ok = zlib:inflateInit(Z),
        [Z | Args]
    end.

socket() ->
    {ok, Socket} = prim_socket:open(inet, stream, tcp, #{}),
    [Socket].

inet() ->
    {ok, Socket} = prim_inet:open(tcp, inet, stream),
    [Socket].

%% A child lives as long as the process that has made the arguments. If it ended by itself, its signals would be seen or not.
child() ->
    Owner = self(),
    fun() -> stays(Owner) end.

child_mfa() -> [?MODULE, stays, [self()]].

-doc false.
stays(Owner) ->
    Ref = monitor(process, Owner),
    receive {'DOWN', Ref, process, Owner, _} -> ok end.

-doc false.
child(m) -> taken;
child(_) -> nomatch.

-doc false.
told(To, Msg) -> To ! Msg.

%% --- what is not -----------------------------------------------------------------

-doc """
Functions that only fail here: those that the VM calls by itself, and those that act on connections, drivers, tracing and memory
of the whole VM.
""".
only_failing() ->
    [{M, F, A} || {M, Functions} <- [
     {erl_ddll,
      [{demonitor, [1]}, {monitor, [2]}]},
     {erl_prim_loader,
      [{get_cwd, [1]}, {prim_get_cwd, [2]}, {prim_list_dir, [2]}, {prim_read_file, [2]},
       {prim_read_file_info, [3]}]},
     {erlang,
      [{dist_ctrl_get_data, [1]}, {dist_ctrl_get_data_notification, [1]}, {dist_ctrl_get_opt, [2]},
       {dist_ctrl_input_handler, [2]}, {dist_ctrl_put_data, [2]}, {dist_ctrl_set_opt, [3]}, {dist_get_stat, [1]},
       {halt, [1, 2]}, {load_module, [2]}, {monitor_node, [2, 3]}, {port_call, [2, 3]}, {port_control, [3]},
       {prepare_loading, [2]}, {process_display, [2]}, {system_monitor, [2]}, {system_profile, [2]}]},
     {erts_debug,
      [{get_internal_state, [1]}, {set_internal_state, [2]}]},
     {erts_internal,
      [{abort_pending_connection, [2]}, {check_dirty_process_code, [2]}, {check_process_code, [1, 3]},
       {create_dist_channel, [3]}, {dirty_process_handle_signals, [1]}, {dist_ctrl_put_data, [2]}, {dist_spawn_request, [4]},
       {dynamic_node_name, [1]}, {ets_super_user, [1]}, {gather_alloc_histograms, [1]}, {gather_carrier_info, [1]},
       {get_internal_state_blocked, [1]}, {group_leader, [2, 3]}, {is_process_alive, [2]}, {new_connection, [1]},
       {notify_breakpoint_hit, [3]}, {open_port, [2]}, {port_call, [3]}, {port_close, [1]}, {port_command, [3]},
       {port_connect, [2]}, {port_control, [3]}, {process_display, [2]}, {process_flag, [3]}, {request_system_task, [3, 4]},
       {scheduler_wall_time, [1]}, {spawn_request, [4]}, {suspend_process, [2]},
       {system_flag_scheduler_wall_time, [1]}, {system_monitor, [1, 3]}, {trace, [3, 4]}, {trace_info, [3]},
       {trace_pattern, [3, 4]}, {trace_session_create, [3]}, {trace_session_destroy, [1]}]},
     {prim_file,
      [{file_desc_to_ref, [2]}, {get_cwd, [1]}, {internal_get_nif_resource, [1]}, {sendfile, [8]},
       {write_file_info, [2, 3]}]},
     {prim_inet,
      [{accept, [1, 2, 3]}, {async_accept, [2]}, {async_connect, [4]}, {async_recv, [3]}, {attach, [1]}, {chgopt, [3]},
       {chgopts, [2]}, {connect, [3, 4]}, {connectx, [2, 3]}, {detach, [1]}, {fdopen, [4, 5]}, {getifaddrs, [1]},
       {getiflist, [1]}, {getservbyname, [3]}, {getservbyport, [3]}, {getstat, [2]}, {ifget, [3]}, {ifset, [3]},
       {ignorefd, [2]}, {is_sockopt_val, [2]}, {listen, [2]}, {open, [4]}, {peeloff, [2]}, {peernames, [1, 2]},
       {recv, [2, 3]}, {recvfrom, [2, 3]}, {send, [2, 3]}, {sendfile, [4]}, {sendmsg, [3]}, {sendto, [4]},
       {setpeername, [2]}, {setsockname, [2]}, {shutdown, [2]}, {socknames, [1, 2]}, {unrecv, [2]}]},
     {prim_net,
      [{debug, [1]}, {get_adapters_addresses, [1]}, {get_if_entry, [1]}, {get_interface_info, [1]},
       {get_ip_address_table, [1]}, {getaddrinfo, [2]}, {getifaddrs, [1]}, {getnameinfo, [2]}, {getservbyname, [2]},
       {getservbyport, [2]}, {if_index2name, [1]}, {p_get, [1]}]},
     {prim_socket,
      [{accept, [2]}, {bind, [2, 3]}, {cancel, [3]}, {connect, [1, 3]}, {debug, [1]}, {enc_sockaddr, [1]},
       {finalize_close, [1]}, {getopt, [2, 3]}, {getopt_native, [3]}, {info, [1]}, {ioctl, [2, 3, 4]}, {is_supported, [2]},
       {listen, [2]}, {open, [2]}, {p_get, [1]}, {peeloff, [2]}, {peernames, [2]}, {recv, [4]}, {recvfrom, [4]},
       {recvmmsg, [6]}, {recvmsg, [5]}, {rest_iov, [2]}, {send, [4]}, {sendfile, [4, 5]}, {sendfile_deferred_close, [1]},
       {sendmmsg, [4]}, {sendmsg, [4, 5]}, {sendto, [4, 5]}, {sendv, [3]}, {setopt, [3]}, {setopt_native, [3]},
       {shutdown, [2]}, {socket_debug, [1]}, {socknames, [2]}, {supports, [2]}, {use_registry, [1]}]},
     {prim_zip,
      [{close, [1]}, {foldl, [3]}, {open, [1, 3]}, {splitter, [3]}]},
     {socket_registry,
      [{cancel_monitor, [1]}, {monitor, [1, 2]}, {monitored_by, [1]}, {number_of_monitors, [1]}, {which_monitors, [1]},
       {which_sockets, [1]}]},
     {witness_record_source,
      [{answer, [2]}, {read, [2]}]},
     {zlib,
      [{inflateSetDictionary, [2]}]}],
        {F, Arities} <- Functions, A <- Arities].

-doc "The arguments with which a call fails.".
failing({_, _, 0}) -> [];
failing({_, _, Arity} = MFA) -> [lists:duplicate(Arity, {witness_wrong}) || not lists:member(MFA, only_succeeding())].

%% Functions that end the VM, or wait for ever, if their arguments are wrong.
only_succeeding() ->
    [{erts_code_purger, purge, 1}, {erts_code_purger, soft_purge, 1}, {init, ensure_loaded, 1}, {init, get_argument, 1},
     {init, get_configfd, 1}, {init, notify_when_started, 1},
     {prim_inet, bind, 3},
     %% How it fails depends on whether a message is there.
     {prim_eval, 'receive', 2}].

-doc "Functions that are not called at all, since they end the VM, or take over what it needs.".
never() ->
    [{erlang, halt, 0}, {init, reboot, 0}, {init, restart, 0}, {init, stop, 0}, {init, stop, 1}, {init, boot, 1},
     {init, make_permanent, 2}, {init, restart, 1}, {init, set_configfd, 2}, {init, wait_until_started, 0},
     {init, run_on_load_handlers, 0}, {prim_file, start, 0}, {erl_prim_loader, start, 0}, {erts_code_purger, start, 0},
     {erts_code_purger, wait_for_request, 0}, {erts_code_purger, finish_after_on_load, 2},
     {erts_code_purger, pending_purge_lambda, 3}, {erts_internal, spawn_system_process, 3}, {socket_registry, start, 0},
     {erts_internal, erase_persistent_terms, 0},
     {erl_prim_loader, prim_init, 0}, {erl_prim_loader, get_modules, 2}, {erl_prim_loader, get_modules, 3},
     {erl_prim_loader, set_path, 1}, {erl_prim_loader, set_primary_archive, 4}, {prim_socket, init, 0},
     %% They are called when their module is loaded.
     {prim_buffer, on_load, 0}, {prim_file, on_load, 0}, {prim_net, on_load, 0}, {prim_net, on_load, 1}, {prim_socket, on_load, 0},
     {prim_socket, on_load, 1}, {zlib, on_load, 0},
     %% They wait for messages that the VM does not send here. Of `hibernate', only the function that is called next matters.
     {erlang, hibernate, 0}, {erlang, hibernate, 3}, {erts_internal, await_microstate_accounting_modifications, 3},
     {erts_internal, await_sched_wall_time_modifications, 2}, {erts_internal, gather_io_bytes, 2},
     {erts_internal, gather_microstate_accounting_result, 2}, {erts_internal, gather_sched_wall_time_result, 1},
     {erts_internal, gather_system_check_result, 1},
     %% It tells how many tables there are.
     {ets, internal_request_all, 0}].

%% --- what was done ---------------------------------------------------------------

-doc "What is compared of the stack trace of a call. One that is recorded may have left its caller out.".
stack([{M, F, Args, _} | _]) when M =/= witness_recorded_calls, M =/= witness_recorded_written, M =/= witness_record_runtime ->
    [{M, F, Args, []}];
stack(_) -> [].

-doc "Whether a call is made in this way.".
is_called(_) -> true.

-doc "What the process can see of what a call has done to its arguments and to itself.".
seen(Args) ->
    {links, Links} = process_info(self(), links),
    #{args => [argument(Arg) || Arg <- Args], named => whereis(?NAME) =:= self(), term => persistent_term:get(?NAME, none),
      env => os:getenv(?ENV), dictionary => lists:sort(get()), links => length(Links), messages => messages()}.

argument(?TABLE) -> try {table, ets:tab2list(?TABLE)} catch error:badarg -> gone end;
argument(Ref) when is_reference(Ref) -> try {number, atomics:get(Ref, 1)} catch error:badarg -> other end;
argument({atomics, _} = Counter) -> {counter, counters:get(Counter, 1)};
argument(_) -> other.
