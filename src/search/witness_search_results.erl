-module(witness_search_results).
-moduledoc """
Calls of controlled processes with results that do not follow from their arguments.

| Functions | Their results |
|---|---|
| links, monitors, exits, names, aliases, timers, process information | those of the world (`m:witness_search_world`) |
| clocks, references, unique integers | the world's: virtual time, and numbers in the order of the run |
| tables, persistent terms, atomics, counters | done for real when the process is chosen |
| everything else | done for real, at once; what differs from run to run makes the run unfaithful |
""".

-export([result/5, foreign/5, effect/3, information/2, raise/5, of_program/1]).

%% The modules that a controlled process runs beside the program.
-define(OWN, [witness_search_runtime, witness_search_spawn, witness_search_messages, witness_search_results,
              witness_search_process, witness_search_memory, witness_search_outside,
              witness_weave_funs]).
%% The process that tells the other VM what happens, and its table of functions that it has told.
-define(RELAY, witness_search_node).
%% What system clocks add to monotonic time: some moment in November 2023, in nanoseconds.
-define(OFFSET_NS, 1_700_000_000_000_000_000).

-doc "Does a call of the table of this number, and writes its entry.".
-spec result(non_neg_integer(), module(), atom(), [term()], witness_search_process:control()) -> term().
result(Number, Module, Function, Args, C) ->
    try run(Module, Function, Args, C) of
        Value ->
            ok = witness_search_process:log({result, Number, Value}, C),
            Value
    catch
        throw:{?MODULE, Reason} -> failed(Number, error, Reason, Module, Function, Args, C);
        Class:Reason -> failed(Number, Class, Reason, Module, Function, Args, C)
    end.

-spec failed(non_neg_integer(), error | exit | throw, Reason :: term(), module(), atom(), [term()],
             witness_search_process:control()) -> no_return().
%% A call that makes a reference has an entry only if it returns.
failed(_, Class, Reason, erlang, Function, Args, _) when Function =:= monitor; Function =:= alias; Function =:= make_ref ->
    raise(Class, Reason, erlang, Function, Args);
failed(Number, Class, Reason, Module, Function, Args, C) ->
    ok = witness_search_process:log({raise, Number, {Class, Reason}}, C),
    raise(Class, Reason, Module, Function, Args).

-doc "Raises the exception of a call.".
-spec raise(error | exit | throw, term(), module(), atom(), [term()]) -> no_return().
raise(Class, Reason, Module, Function, Args) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    erlang:raise(Class, Reason, [{Module, Function, Args, []} | of_program(Stack)]).

-doc "A stack without the frames of the search.".
-spec of_program([term()]) -> [term()].
of_program(Stack) -> [Frame || Frame <- Stack, not is_own(Frame)].

is_own(Frame) when is_tuple(Frame), tuple_size(Frame) > 0 -> lists:member(element(1, Frame), ?OWN);
is_own(_) -> false.

-doc "A call of a function that is not woven.".
-spec foreign(non_neg_integer(), module(), atom(), [term()], witness_search_process:control()) -> term().
foreign(Number, Module, Function, Args, C) ->
    _ = [refuse(Module, Function, Args, C) || is_refused(Module, Function)],
    _ = [witness_search_process:perform({halt, case Args of [] -> [0]; _ -> Args end}, C) || Module =:= init, Function =:= stop],
    _ = [begin
             ok = witness_search_process:fault(foreign, {Module, Function, length(Args)}, C),
             ok = announce({Module, Function, length(Args)})
         end || is_outside(Module, Function)],
    try witness_search_process:outside(Module, Function, Args) of
        Value ->
            ok = witness_search_process:log({result, Number, Value}, C),
            Value
    catch
        Class:Reason -> failed(Number, Class, Reason, Module, Function, Args, C)
    end.

%% The function may never return, and block this VM: so the other one knows of it before. Each is announced once.
announce(Function) ->
    case ets:insert_new(?RELAY, {Function}) of
        true ->
            {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
            ?RELAY ! {calls, self(), {Function, of_program(Stack)}},
            receive {?RELAY, told} -> ok end;
        false -> ok
    end.

-spec refuse(module(), atom(), [term()], witness_search_process:control()) -> no_return().
refuse(Module, Function, Args, C) -> witness_search_process:refuse({Module, Function, length(Args)}, C).

%% What comes over a port or a socket comes when it likes.
is_refused(prim_inet, open) -> true;
is_refused(prim_socket, open) -> true;
is_refused(erl_ddll, _) -> true;
is_refused(init, Function) -> lists:member(Function, [restart, reboot, restart_with_mode]);
is_refused(_, _) -> false.

%% Reading files and loading code is the same in each run, as long as the files are.
is_outside(code, ensure_loaded) -> false;
is_outside(Module, _) when Module =:= re; Module =:= binary; Module =:= erl_prim_loader; Module =:= init; Module =:= prim_zip;
                           Module =:= zlib -> false;
is_outside(prim_file, Function) -> not lists:member(Function, [read_file, read_file_info, read_link_info, list_dir, get_cwd, open,
                                                               read,
                                                               pread, position, close, get_handle, internal_name2native,
                                                               internal_native2name, internal_normalize_utf8, is_translatable,
                                                               native_name_encoding]);
is_outside(_, _) -> true.

%% --- calls of the table ----------------------------------------------------------

run(erlang, Function, Args, C) -> run(Function, Args, C);
run(os, system_time, [], C) -> system_time(native, C);
run(os, system_time, [Unit], C) -> system_time(Unit, C);
run(os, timestamp, [], C) -> timestamp(C);
run(os, perf_counter, [], C) -> clock(C);
run(os, Function, Args, C) when Function =:= getpid; Function =:= putenv; Function =:= unsetenv; Function =:= set_signal ->
    ok = witness_search_process:fault(differs, {os, Function, length(Args)}, C),
    apply(os, Function, Args);
run(ets, internal_request_all, [], C) -> request_tables(C);
run(Module, Function, Args, C) when Module =:= ets; Module =:= persistent_term; Module =:= atomics; Module =:= counters ->
    shared(Module, Function, Args, C);
run(erts_internal, Function, Args, C) when Function =:= trace; Function =:= trace_session_create; Function =:= system_monitor ->
    refuse(erts_internal, Function, Args, C);
run(Module, Function, Args, _) -> apply(Module, Function, Args).

run(monotonic_time, [], C) -> clock(C);
run(monotonic_time, [Unit], C) -> erlang:convert_time_unit(clock(C), nanosecond, Unit);
run(system_time, [], C) -> system_time(native, C);
run(system_time, [Unit], C) -> system_time(Unit, C);
run(time_offset, [], _) -> ?OFFSET_NS;
run(time_offset, [Unit], _) -> erlang:convert_time_unit(?OFFSET_NS, nanosecond, Unit);
run(Function, [], C) when Function =:= timestamp; Function =:= now -> timestamp(C);
run(universaltime, [], C) -> calendar:system_time_to_universal_time(system_time(second, C), second);
run(localtime, [], C) -> run(universaltime, [], C);
run(date, [], C) -> element(1, run(universaltime, [], C));
run(time, [], C) -> element(2, run(universaltime, [], C));
run(make_ref, [], C) -> witness_search_process:query(reference, C);
run(unique_integer, [], C) -> witness_search_process:query(integer, C);
run(unique_integer, [Modifiers], C) ->
    _ = erlang:unique_integer(Modifiers),
    witness_search_process:query(integer, C);
run(monitor, [process, Target], C) -> set_monitor(Target, [], C);
run(monitor, [process, Target, Options], C) -> set_monitor(Target, Options, C);
run(demonitor, [Ref, Options], C) -> remove_monitor(Ref, Options, C);
run(link, [Pid | _], C) when is_pid(Pid) -> known(witness_search_process:perform({link, Pid}, C), link, [Pid], C);
run(whereis, [Name], C) when is_atom(Name) ->
    case witness_search_process:perform({whereis, Name}, C) of
        noname ->
            case witness_search_applications:find(Name, C) of
                here -> run(whereis, [Name], C);
                none -> undefined;
                Found -> Found
            end;
        Pid -> Pid
    end;
run(register, [Name, Pid], C) when is_atom(Name), Name =/= undefined, is_pid(Pid) ->
    case erlang:whereis(Name) =:= undefined andalso witness_search_process:perform({register, Name, Pid}, C) of
        true -> true;
        {outside, Real} -> erlang:register(Name, Real);
        _ -> badarg()
    end;
run(unregister, [Name], C) when is_atom(Name) ->
    case witness_search_process:perform({unregister, Name}, C) of
        noname ->
            _ = [refuse(erlang, unregister, [Name], C) || witness_search_process:is_protected(erlang:whereis(Name))],
            erlang:unregister(Name);
        true -> true
    end;
run(registered, [], C) -> witness_search_process:perform(registered, C) ++ erlang:registered();
run(processes, [], C) -> witness_search_process:perform(processes, C);
run(is_process_alive, [Pid], C) when is_pid(Pid) ->
    known(witness_search_process:perform({is_alive, Pid}, C), is_process_alive, [Pid], C);
run(group_leader, [], C) -> witness_search_process:query(leader, C);
run(group_leader, [Leader, Pid], C) when is_pid(Leader), is_pid(Pid) ->
    case witness_search_process:perform({leader, Pid, Leader}, C) of true -> true; _ -> badarg() end;
run(alias, [], C) -> witness_search_process:query({alias, explicit}, C);
run(alias, [Options], C) ->
    _ = erlang:unalias(erlang:alias(Options)),
    witness_search_process:query({alias, case lists:member(reply, Options) of true -> once; false -> explicit end}, C);
run(unalias, [Ref], C) when is_reference(Ref) -> witness_search_process:perform({unalias, Ref}, C);
run(Function, [Time, To, Message | Options], C) when Function =:= send_after; Function =:= start_timer ->
    is_integer(Time) andalso (is_pid(To) orelse is_atom(To)) orelse badarg(),
    Absolute = lists:any(fun(Given) -> lists:member({abs, true}, Given) end, Options),
    Absolute orelse Time >= 0 orelse badarg(),
    At = case Absolute of true -> Time * 1_000_000; false -> clock(C) + Time * 1_000_000 end,
    witness_search_process:perform({timer, Function, At, To, Message}, C);
run(cancel_timer, [Ref | Options], C) when is_reference(Ref) ->
    asked(cancel_timer, left(witness_search_process:perform({cancel_timer, Ref}, C)), Ref, lists:append(Options), C);
run(read_timer, [Ref | Options], C) when is_reference(Ref) ->
    asked(read_timer, left(witness_search_process:perform({read_timer, Ref}, C)), Ref, lists:append(Options), C);
run(garbage_collect, [Pid | _], _) when is_pid(Pid) -> true;
%% One process runs at a time, since the clock began.
run(system_info, [scheduler_id], _) -> 1;
run(system_info, [start_time], _) -> 0;
run(system_info, [process_count], C) -> length(witness_search_process:perform(processes, C));
run(system_info, [Item], C) ->
    _ = is_same(Item) orelse unfaithful(system_info, 1, C),
    erlang:system_info(Item);
run(process_flag, [Pid, save_calls, _], C) when is_pid(Pid) -> unfaithful(process_flag, 3, C), 0;
run(Function, [_ | _] = Args, C) when Function =:= suspend_process; Function =:= resume_process ->
    unfaithful(Function, length(Args), C),
    true;
%% A flag of the VM holds for the search, and for all later runs. What is traced is the VM that runs the program.
run(Function, Args, C) when Function =:= open_port; Function =:= monitor_node; Function =:= system_flag; Function =:= trace;
                            Function =:= system_monitor; Function =:= system_profile ->
    refuse(erlang, Function, Args, C);
run(Function, Args, C) ->
    _ = [unfaithful(Function, length(Args), C) || differs(Function), Function =/= nodes orelse erlang:is_alive()],
    apply(erlang, Function, Args).

%% They depend on what else this VM does, or act on something outside.
differs(Function) ->
    lists:member(Function, [memory, statistics, port_call, port_close, port_command, port_connect, port_control, port_get_data,
                            port_info, port_set_data, ports, nodes, process_display,
                            trace_delivered, trace_info, trace_pattern, processes_iterator, processes_next,
                            spawn_request_abandon, dist_ctrl_put_data, dist_ctrl_get_data]).

%% What is the same as long as this VM runs, and in each VM with the same flags.
is_same(Item) when is_tuple(Item) -> lists:member(element(1, Item), [cpu_topology, wordsize]);
is_same(Item) ->
    lists:member(Item, [alloc_util_allocators, allocator, async_dist, atom_limit, backtrace_depth, break_ignored, build_flavor,
                        build_type, c_compiler_used, compat_rel, compile_info, cpu_quota, cpu_topology, creation,
                        debug_compiled, dirty_cpu_schedulers, dirty_cpu_schedulers_online, dirty_io_schedulers,
                        dist_buf_busy_limit, driver_version, dynamic_trace, dynamic_trace_probes, eager_check_io, emu_flavor,
                        emu_type, ets_limit, fullsweep_after, garbage_collection, halt_flush_timeout, heap_sizes, heap_type,
                        instruction_counts, kernel_poll, logical_processors, logical_processors_available,
                        logical_processors_online, machine, max_heap_size, message_queue_data, min_bin_vheap_size,
                        min_heap_size, modified_timing_level, multi_scheduling, nif_version, os_type, os_version, otp_release,
                        outstanding_system_requests_limit, port_limit, port_parallelism, process_limit, scheduler_bind_type,
                        scheduler_bindings, schedulers, schedulers_online, sequential_tracer, smp_support, system_architecture,
                        system_logger, system_version, thread_pool_size, threads, time_correction, time_offset, time_warp_mode,
                        tolerant_timeofday, update_cpu_info, version, wordsize]).

unfaithful(Function, Arity, C) -> witness_search_process:fault(differs, {erlang, Function, Arity}, C).

-spec badarg() -> no_return().
badarg() -> throw({?MODULE, badarg}).

%% The result of the world, or that of this VM for what is outside.
known({outside, Real}, Function, [_ | Rest] = Args, C) ->
    _ = [refuse(erlang, link, Args, C) || Function =:= link, witness_search_process:is_protected(Real)],
    apply(erlang, Function, [Real | Rest]);
known(Value, _, _, _) when is_boolean(Value) -> Value;
known(_, _, _, _) -> badarg().

set_monitor({Name, Node}, Options, C) when is_atom(Name), Node =:= node() -> monitor_name(Name, {Name, Node}, Options, C);
set_monitor(Name, Options, C) when is_atom(Name) -> monitor_name(Name, Name, Options, C);
set_monitor(Target, Options, C) -> monitor_process(Target, Options, C).

%% A name that this VM has is that of a process outside, unless the world has it too.
monitor_name(Name, Target, Options, C) ->
    case erlang:whereis(Name) =/= undefined andalso run(whereis, [Name], C) of
        Found when is_pid(Found) ->
            case witness_search_process:query({real, Found}, C) of
                Found -> monitor_outside(Target, Options, C);
                _ -> monitor_process(Target, Options, C)
            end;
        undefined -> monitor_process(Target, Options, C);
        %% The name of the program's process, or of a server that it has not needed before.
        false ->
            _ = witness_search_applications:find(Name, C),
            monitor_process(Target, Options, C)
    end.

monitor_process(Target, Options, C) ->
    case witness_search_process:perform({monitor, Target, Options}, C) of
        Ref when is_reference(Ref) -> Ref;
        {outside, Real} -> monitor_outside(Real, Options, C);
        _ -> badarg()
    end.

%% The processes that this VM started with do not end during a run. Their answers are expected when they are asked.
monitor_outside(Target, [], C) when not is_pid(Target) -> witness_search_process:query(reference, C);
monitor_outside(Real, Options, _) ->
    ok = witness_search_process:expect(message),
    erlang:monitor(process, Real, Options).

remove_monitor(Ref, Options, C) ->
    Known = witness_search_process:perform({demonitor, Ref, lists:member(flush, Options)}, C),
    Real = erlang:demonitor(Ref, Options),
    case lists:member(info, Options) of
        true -> Known orelse Real;
        false -> true
    end.

left({left, Nanoseconds}) -> Nanoseconds div 1_000_000;
left(false) -> false.

asked(Function, Result, Ref, Options, C) ->
    case {lists:member({async, true}, Options), lists:member({info, false}, Options)} of
        {true, false} ->
            ok = witness_search_process:perform({tell, {Function, Ref, Result}}, C),
            ok;
        {true, true} -> ok;
        {false, true} -> ok;
        {false, false} -> Result
    end.

%% `ets:all/0' asks for the tables, and receives as many lists as the VM has schedulers.
request_tables(C) ->
    go = witness_search_process:perform({shared, {ets, all, []}}, C),
    Ref = witness_search_process:query(reference, C),
    Tables = lists:sort([Shown || Table <- witness_search_process:outside(ets, all, []), Shown <- shown(Table, C)]),
    Lists = [Tables | lists:duplicate(erlang:system_info(schedulers) - 1, [])],
    _ = [ok = witness_search_process:query({arrives, none, {Ref, List}}, C) || List <- Lists],
    Ref.

%% The search has tables itself. The program can know those of other processes outside by their names alone.
shown(Table, _) when is_atom(Table) -> [Table || not lists:prefix("witness_", atom_to_list(Table)) orelse is_controlled(Table)];
shown(Table, C) -> [known(Table, C) || is_controlled(Table)].

is_controlled(Table) -> witness_search_memory:is_controlled(ets:info(Table, owner)).

%% --- time ------------------------------------------------------------------------

clock(C) -> witness_search_process:query(clock, C).

system_time(Unit, C) -> erlang:convert_time_unit(clock(C) + ?OFFSET_NS, nanosecond, Unit).

timestamp(C) ->
    Microseconds = system_time(microsecond, C),
    {Microseconds div 1_000_000_000_000, Microseconds div 1_000_000 rem 1_000_000, Microseconds rem 1_000_000}.

%% --- shared memory ---------------------------------------------------------------

%% The program has its own references to tables and arrays (`m:witness_search_memory`). What belongs to processes outside is
%% the same in each run, until the program changes it.
shared(Module, Function, Args, C) ->
    _ = [ok = witness_search_applications:find_table(Table, C)
         || Module =:= ets, [Table | _] <- [Args], is_atom(Table), ets:whereis(Table) =:= undefined, Function =/= new],
    Real = witness_search_memory:real(Module, Args),
    _ = [refuse(Module, Function, Args, C) || Module =:= ets, removes_outside(Function, Real)],
    _ = [go = witness_search_process:perform({shared, {Module, Function, Args}}, C) || is_visible(Module, Function, Real)],
    _ = [witness_search_memory:keep_term(hd(Args)) || Module =:= persistent_term, lists:member(Function, [put, put_new, erase])],
    virtual(Module, Function, done(Module, Function, Real, C), C).

is_visible(ets, new, [_, Options]) -> is_list(Options) andalso lists:member(named_table, Options);
is_visible(ets, Function, [Table | _]) when is_atom(Table); is_reference(Table) ->
    case ets:info(Table, owner) of
        undefined -> true;
        Owner ->
            witness_search_memory:is_controlled(Owner) orelse witness_search_memory:is_kept_outside(Table)
                orelse changes_outside(Function, Table)
    end;
is_visible(ets, _, _) -> false;
is_visible(persistent_term, get, [Key | _]) ->
    %% It may be put yet.
    witness_search_memory:is_kept(Key) orelse persistent_term:get(Key, ?MODULE) =:= ?MODULE;
is_visible(_, Function, _) -> Function =/= new.

%% Tables of the VM, which others need. The controlled application controller has `ac_tab' in common with the real one, and
%% deletes it at its end.
removes_outside(delete, [ac_tab]) -> false;
removes_outside(Function, [Table | Args]) when Function =:= delete, Args =:= []; Function =:= rename ->
    case ets:info(Table, owner) of
        undefined -> false;
        Owner -> not witness_search_memory:is_controlled(Owner)
    end;
removes_outside(_, _) -> false.

changes_outside(Function, Table) ->
    witness_record_shared:kind(ets, Function) =:= change andalso ets:info(Table, protection) =:= public
        andalso witness_search_memory:keep_outside(Table).

%% Processes that own and inherit tables have the pids of this VM there.
done(ets, new, [Name, Options], C) when is_list(Options) ->
    Table = ets:new(Name, [real_heir(Option, C) || Option <- Options]),
    _ = [keep_heir(Option, Table, C) || Option <- Options],
    Table;
%% A table of a process outside stays there.
done(ets, delete, [Table], _) ->
    case witness_search_memory:is_kept_outside(Table) of
        true -> witness_search_process:outside(ets, delete_all_objects, [Table]);
        false -> ets:delete(Table)
    end;
done(ets, setopts, [Table, Options], C) ->
    Given = case Options of [_ | _] -> Options; _ -> [Options] end,
    true = ets:setopts(Table, [real_heir(Option, C) || Option <- Given]),
    _ = [keep_heir(Option, Table, C) || Option <- Given],
    true;
done(ets, give_away, [Table, Pid, Data], C) when is_pid(Pid) ->
    Real = real(Pid, C),
    true = ets:give_away(Table, Real, Data),
    _ = [ok = witness_search_process:query({tell, Pid, {'ETS-TRANSFER', known(Table, C), witness_search_process:pid(C), Data}}, C)
         || Real =/= Pid],
    true;
done(Module, Function, Args, _) -> apply(Module, Function, Args).

real_heir({heir, Pid, Data}, C) -> {heir, real(Pid, C), Data};
real_heir(Option, _) -> Option.

real(Pid, C) when is_pid(Pid) -> witness_search_process:query({real, Pid}, C);
real(Other, _) -> Other.

keep_heir({heir, Pid, Data}, Table, C) -> real(Pid, C) =/= Pid andalso witness_search_memory:keep_heir(Table, Data);
keep_heir(_, _, _) -> false.

%% What the program sees of pids, tables and arrays of this VM.
virtual(ets, info, Info, C) when is_list(Info) -> [virtual(ets, info, Item, C) || Item <- Info];
virtual(ets, info, {Key, Value}, C) when Key =:= id; Key =:= owner; Key =:= heir -> {Key, virtual(ets, info, Value, C)};
virtual(ets, info, Pid, _) when is_pid(Pid) -> witness_search_memory:virtual_pid(Pid);
virtual(persistent_term, get, [_ | _] = Terms, _) -> [Term || {Key, _} = Term <- Terms, not witness_search_memory:is_own_term(Key)];
virtual(Module, Function, Value, C) when Function =:= new; Function =:= whereis; Module =:= ets, Function =:= info ->
    known(Value, C);
virtual(_, _, Value, _) -> Value.

known(Value, C) -> witness_search_memory:virtual(Value, fun() -> witness_search_process:query(reference, C) end).


%% --- signals, and output of the VM -----------------------------------------------

-doc "A signal to another process, or output of the VM itself. They have no entries.".
-spec effect(atom(), [term()], witness_search_process:control()) -> term().
effect(Function, [To, Reason | _] = Args, C) when Function =:= exit; Function =:= exit_signal ->
    case is_pid(To) andalso witness_search_process:perform({exit, To, Reason}, C) of
        true -> true;
        {outside, Real} ->
            _ = [refuse(erlang, Function, Args, C) || Reason =/= normal, witness_search_process:is_protected(Real)],
            erlang:exit(Real, Reason);
        _ -> apply(erlang, Function, Args)
    end;
effect(unlink, [To] = Args, C) ->
    case is_pid(To) andalso witness_search_process:perform({unlink, To}, C) of
        true -> true;
        _ -> apply(erlang, unlink, Args)
    end;
effect(demonitor, [Ref] = Args, C) ->
    is_reference(Ref) orelse raise(error, badarg, erlang, demonitor, Args),
    remove_monitor(Ref, [], C);
effect(process_flag, [trap_exit, Trap], C) when is_boolean(Trap) -> witness_search_process:perform({trap_exit, Trap}, C);
%% Sizes of heaps are not those of a plain run.
effect(process_flag, [max_heap_size, _] = Args, C) ->
    unfaithful(process_flag, 2, C),
    Before = process_info(self(), max_heap_size),
    _ = erlang:process_flag(max_heap_size, lists:last(Args)),
    _ = erlang:process_flag(max_heap_size, 0),
    element(2, Before);
effect(Function, _, _) when Function =:= display; Function =:= display_string -> true;
effect(Function, Args, _) -> apply(erlang, Function, Args).

%% --- information about processes -------------------------------------------------

-doc "`process_info/1,2`: what the world knows, and the rest from the process of this VM.".
-spec information([term()], witness_search_process:control()) -> term().
information([Pid | Items] = Args, C) when is_pid(Pid) ->
    Number = witness_record_calls:number(erlang, process_info, length(Args)),
    Value = case ask(Pid, Items, C) of
        {information, Known} -> items(Items, Known);
        ended -> undefined;
        {outside, Real} -> witness_search_process:outside(erlang, process_info, [Real | Items])
    end,
    ok = witness_search_process:log({result, Number, Value}, C),
    Value;
information(Args, _) -> apply(erlang, process_info, Args).

%% No other process changes these items of a process.
-define(PRIVATE, [current_function, current_location, current_stacktrace, dictionary, initial_call, trap_exit, error_handler,
                  priority,
                  total_heap_size, heap_size, stack_size, reductions, garbage_collection, min_heap_size, catchlevel, memory]).

ask(Pid, Items, C) ->
    case witness_search_process:pid(C) =:= Pid andalso Items =/= [] andalso lists:flatten(Items) -- ?PRIVATE of
        [] -> witness_search_process:query(information, C);
        _ -> witness_search_process:perform({information, Pid}, C)
    end.

items([], Known) ->
    [{registered_name, Name} || #{registered_name := Name} <- [Known], Name =/= []]
        ++ [Item || Key <- [current_function, initial_call, status, message_queue_len, links, dictionary, trap_exit, error_handler,
                            priority,
                            group_leader, total_heap_size, heap_size, stack_size, reductions, garbage_collection, suspending],
                    Item <- [item(Key, Known)]];
items([Items], Known) when is_list(Items) -> [item_in_list(Item, Known) || Item <- Items];
items([registered_name], #{registered_name := []}) -> [];
items([Item], Known) -> item(Item, Known).

item_in_list(Item, Known) -> item(Item, Known).

item(Key, Known) when is_map_key(Key, Known), Key =/= real -> {Key, map_get(Key, Known)};
item(Key, #{real := Real}) when is_pid(Real) ->
    case witness_search_process:outside(erlang, process_info, [Real, Key]) of
        {current_stacktrace, Stack} -> {current_stacktrace, of_program(Stack)};
        {Current, _} = Item when Current =:= current_function; Current =:= current_location -> current(Item, Real);
        Item -> witness_record_dictionary:without_own(Item, fun(Own) -> Own =:= witness_search_process:key() end)
    end;
item(Key, _) -> {Key, undefined}.

%% Where the program is, and not what runs it.
current({Item, _} = Found, Real) ->
    {current_stacktrace, Stack} = witness_search_process:outside(erlang, process_info, [Real, current_stacktrace]),
    case {Item, of_program(Stack)} of
        {current_function, [{Module, Function, Arity, _} | _]} -> {Item, {Module, Function, Arity}};
        {current_location, [Frame | _]} -> {Item, Frame};
        {_, []} -> Found
    end.
