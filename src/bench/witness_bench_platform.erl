-module(witness_bench_platform).
-moduledoc """
The platform of a measurement, without anything that would identify its owner: no name of a host or of a person.
""".

-export([facts/1, named/1, line/1]).

-export_type([facts/0]).

-doc "A map that JSON can represent. Unknown values are `null`.".
-type facts() :: #{atom() => binary() | number() | boolean() | null}.

-doc "The facts of this machine and this VM. `Native`: whether the tracer in C can be loaded.".
-spec facts(Native :: boolean()) -> facts().
facts(Native) ->
    _ = application:load(witness),
    {ok, Version} = application:get_key(witness, vsn),
    #{witness => list_to_binary(Version), native => Native,
      otp => list_to_binary(erlang:system_info(otp_release)), erts => list_to_binary(erlang:system_info(version)),
      emulator => atom_to_binary(erlang:system_info(emu_flavor)),
      os => os(), cpu => cpu(), cores => known(erlang:system_info(logical_processors_available),
                                               erlang:system_info(logical_processors)),
      memory_bytes => memory(), schedulers => erlang:system_info(schedulers_online)}.

known(unknown, unknown) -> null;
known(unknown, Number) -> Number;
known(Number, _) -> Number.

os() ->
    {_, Name} = os:type(),
    Version = case os:version() of
        {Major, Minor, Release} -> io_lib:format("~b.~b.~b", [Major, Minor, Release]);
        Text -> Text
    end,
    Architecture = hd(string:split(erlang:system_info(system_architecture), "-")),
    unicode:characters_to_binary([atom_to_list(Name), $\s, Version, $\s, Architecture]).

cpu() ->
    case matched("/proc/cpuinfo", ~B"^model name\s*:\s*(.*)$") of
        null -> command("sysctl -n machdep.cpu.brand_string");
        Model -> Model
    end.

memory() ->
    case matched("/proc/meminfo", ~B"^MemTotal:\s*(\d+) kB") of
        null -> number(command("sysctl -n hw.memsize"));
        Kilobytes -> binary_to_integer(Kilobytes) * 1024
    end.

matched(File, Pattern) ->
    maybe
        {ok, Text} ?= file:read_file(File),
        {match, [Found]} ?= re:run(Text, Pattern, [multiline, {capture, all_but_first, binary}]),
        string:trim(Found)
    else
        _ -> null
    end.

%% If there is no such command, the output is an error text of the shell, which is ignored.
command(Command) ->
    case os:type() of
        {unix, System} when System =/= linux -> unicode:characters_to_binary(string:trim(os:cmd(Command)));
        _ -> null
    end.

number(null) -> null;
number(Text) -> try binary_to_integer(Text) catch error:badarg -> null end.

-doc "The facts as in a file, by their names.".
-spec named(#{binary() => json:decode_value()}) -> {ok, facts()} | {error, unicode:chardata()}.
named(Named) ->
    Known = #{Key => maps:get(atom_to_binary(Key), Named, none) || Key <- maps:keys(facts(false))},
    #{witness := Witness, otp := Otp, erts := Erts, os := Os, schedulers := Schedulers} = Known,
    case lists:all(fun is_binary/1, [Witness, Otp, Erts, Os]) andalso is_integer(Schedulers)
        andalso not lists:member(none, maps:values(Known)) of
        true -> {ok, Known};
        false -> {error, ~"is not one that Witness writes"}
    end.

-doc "The facts as a line.".
-spec line(facts()) -> unicode:chardata().
line(#{witness := Witness, native := Native, otp := Otp, erts := Erts, os := Os, cpu := Cpu, cores := Cores,
       memory_bytes := Memory, schedulers := Schedulers}) ->
    [~"Witness ", Witness, case Native of true -> ~""; false -> ~" without native code" end,
     ~", OTP ", Otp, ~" (ERTS ", Erts, ~"), ", integer_to_binary(Schedulers), ~" schedulers on ", cores(Cores),
     case Cpu of null -> ~""; _ -> [~" (", Cpu, ~")"] end,
     case Memory of null -> ~""; _ -> io_lib:format(", ~.1f GiB", [Memory / (1 bsl 30)]) end, ~", ", Os].

cores(null) -> ~"unknown cores";
cores(Number) -> [integer_to_binary(Number), ~" cores"].
