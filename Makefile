# Every target gets what it lacks by itself (bin/toolchain), and is quick when nothing is missing.
.PHONY: help all build demo demo-replay demo-search check test test-all cover test-otp27 agreement central deadlines soak soak-inline soak-central attach-races remote fuzz oracle oracle-reelay oracle-dejavu oracle-monpoly oracle-pobserve requirements weave-props record-props record-kills record-savina record-soak replays replay-fuzz concuerror otp-programs step-props replay-service trust explore-deep faults native-asan native-stress bench bench-smoke bench-perturbation bench-overhead bench-latency bench-deadlines bench-functions bench-timescales bench-modes bench-inline bench-overload bench-behind bench-monitors bench-logs bench-savina bench-record bench-tables bench-replay bench-step bench-search bench-search-behaviours bench-search-libraries bench-acme-air clean deep-search

# Evaluating the output of a command that failed would hide the failure.
toolchain = env=$$(bin/toolchain env) && eval "$$env"

help: ## Print this list (the default)
	@sed -n 's/^\([a-z0-9 -]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r target text; do \
	  printf '  make %-19s %s\n' "$$target" "$$text"; done

all build: ## Compile
	@$(toolchain) && rebar3 compile

demo: ## Build, then watch a small system go wrong
	@bin/witness demo

demo-replay: ## Record a race that shows once in some hundred runs, replay it, and step to its cause
	@examples/last_seat/demo

demo-search: ## Search for that race, which then shows after a few schedules, replay it, and show its cause
	@examples/last_seat/demo-search

check: ## Within minutes: compile, layout, xref, the quick unit tests, one scenario of each suite
	@bin/gate check

test: ## The whole gate: compile, layout, xref, dialyzer, EUnit, Common Test, native code, the report in a browser, the commands of the guides; or make test SUITE=NAME CASE=NAME GROUP=NAME
	@bin/gate $(if $(SUITE)$(CASE)$(GROUP),only "$(SUITE)" "$(CASE)" "$(GROUP)")

cover: ## Which lines the tests run: the report is _build/otp29/test/cover/index.html; or make cover MODULES=NAME,NAME for these of EUnit
	@$(toolchain) && rebar3 cover --reset && { \
	  rebar3 eunit --cover $(if $(MODULES),--module=$(MODULES)); $(if $(MODULES),,rebar3 ct --cover;) rebar3 cover --verbose; }

test-otp27: ## The same test suites on OTP 27
	@WITNESS_OTP=27 bin/gate

agreement: ## The shared set of systems, 100 runs each, also with one scheduler: verdicts are the expected ones
	@$(toolchain) && WITNESS_AGREEMENT_RUNS=100 rebar3 ct --suite=test/witness_agreement_SUITE,test/witness_inline_agreement_SUITE

central: ## The same centrally, with systems whose properties span processes, 100 runs each over both sources
	@$(toolchain) && WITNESS_CENTRAL_RUNS=100 rebar3 ct --suite=test/witness_central_SUITE --group=native,evm \
	  --case=shared_systems_have_their_verdicts,properties_over_several_processes_have_theirs

deadlines: ## A million requests that are answered close to their deadline, over both sources: none that is met is told as missed
	@$(toolchain) && WITNESS_DEADLINES_REQUESTS=$${WITNESS_DEADLINES_REQUESTS:-1000000} rebar3 ct --suite=test/witness_deadlines_SUITE

explore-deep: ## Explore larger systems of the choreography exhaustively, for about a quarter of an hour
	@bin/witness explore --all --deep

test-all: ## The whole gate with all that it shares between versions of the project: every case, system and planted fault
	@WITNESS_SHARE=1 bin/gate

faults: ## Plant every fault that the tests have to find, of which the gate plants a quarter: each is found
	@$(toolchain) && rebar3 eunit --module=witness_explore_tests,witness_outline_core_props_tests,witness_run_core_props_tests,witness_spec_mutation_tests,witness_weave_props_tests

remote: ## Kill the tool that is attached to a remote node, and cut its connection, at 100 random moments each
	@$(toolchain) && WITNESS_REMOTE_RANDOM=100 WITNESS_EVERY=1 rebar3 ct --suite=test/witness_remote_SUITE

soak: ## Load for a long time: nothing may leak or be lost
	@$(toolchain) && bench/soak

soak-central: ## The same load, centrally: sound, or what is missing is told
	@$(toolchain) && WITNESS_INSTRUMENT=central bench/soak

soak-inline: ## The loads in which every message is numbered, with 100,000 workers that monitor themselves
	@$(toolchain) && WITNESS_INLINE_WORKERS=100000 rebar3 ct --suite=test/witness_inline_SUITE --group=native --case=load_is_sound

attach-races: ## Attach to a busy application and leave it again, 10,000 times: nothing is missed, nothing is left
	@$(toolchain) && WITNESS_ATTACH_CYCLES=10000 rebar3 ct --suite=test/witness_run_attach_SUITE --case=races

fuzz: ## 200,000 damaged specifications and two million damaged logs, never the same: each is read or refused
	@$(toolchain) && WITNESS_FUZZ_INPUTS=200000 WITNESS_LOG_FUZZ_INPUTS=1000000 WITNESS_FUZZ_SEED=$$(date +%s) \
	  rebar3 eunit --module=witness_spec_fuzz_tests,witness_log_fuzz_tests,witness_offline_fuzz_tests

oracle: ## A million random formulas with traces: monitors and the evaluator of the semantics agree
	@$(toolchain) && rebar3 as test compile && erl -noshell -pa "$$WITNESS_BUILD/test/lib/witness/ebin" \
	  -pa "$$WITNESS_BUILD/test/lib/witness/test/support" -s witness_spec_oracle_run main -s init stop

oracle-reelay: ## 100,000 random past-time formulas with traces: the values of let are those of Reelay, which pip fetches
	@test/oracles/reelay/run

oracle-dejavu: ## The tests of DejaVu: properties are violated where it says (WITNESS_DEJAVU: a clone of it; git fetches one otherwise)
	@test/oracles/dejavu/run

oracle-pobserve: ## The logs of PObserve's regression tests: violated when and where it says (WITNESS_POBSERVE: a clone of P; git fetches one otherwise)
	@test/oracles/pobserve/run

oracle-monpoly: ## The tests of MonPoly: formulas hold where and with the values that it prints (WITNESS_MONPOLY: a clone of it; git fetches one otherwise)
	@test/oracles/monpoly/run

requirements: ## Score specifications that readers of the guide have written for test/requirements: make requirements ANSWERS=DIR, with 01.hml to 30.hml
	@$(toolchain) && rebar3 as test compile > /dev/null && ANSWERS="$(ANSWERS)" erl -noshell -pa "$$WITNESS_BUILD/test/lib/witness/ebin" \
	  -pa "$$WITNESS_BUILD/test/lib/witness/test/support" -s witness_requirements main

weave-props: ## 5,000 random programs, woven, do what they did before and report it; every planted fault is found
	@$(toolchain) && WITNESS_WEAVE_PROGRAMS=5000 rebar3 eunit --module=witness_weave_props_tests

step-props: ## Go 1,000 times to a step at random and back, in recordings of Erlang and Elixir: it is so as going forward says
	@$(toolchain) && WITNESS_STEPS=1000 rebar3 ct --suite=test/witness_step_SUITE \
	  --case=going_back_agrees_with_going_forward,going_back_agrees_with_going_forward_in_elixir,states_agree_when_one_goes_back

record-props: ## 2,000 random programs, recorded: the recording is exactly what their processes have noted
	@$(toolchain) && WITNESS_RECORD_PROGRAMS=2000 rebar3 eunit --module=witness_record_props_tests

record-kills: ## Kill 1,000 VMs while they record: what they leave is readable; ends after 40 minutes, and goes on there
	@$(toolchain) && WITNESS_RECORD_KILLS=1000 WITNESS_RECORD_KILLS_SECONDS=2400 WITNESS_RECORD_KILLS_DONE=$$PWD/_build/record-kills-$${WITNESS_BUILD##*/} \
	  rebar3 eunit --module=witness_record_writer_tests

record-savina: ## Record the benchmarks of the Savina suite with SOMns's parameters: exactly what their processes have noted
	@$(toolchain) && WITNESS_RECORD_SAVINA=somns rebar3 ct --suite=test/witness_record_savina_SUITE

record-soak: ## Record at full message rate for ten minutes: memory does not grow; slow and full disks end recordings only
	@$(toolchain) && WITNESS_RECORD_SOAK_SECONDS=600 rebar3 ct --suite=test/witness_record_soak_SUITE

replays: ## Record each program of the tests ten times, and replay each recording a hundred times; ends after some 35 minutes, and goes on there
	@$(toolchain) && export WITNESS_REPLAY_RECORDINGS=10 WITNESS_REPLAYS=100 WITNESS_REPLAY_DONE=$$PWD/_build/replays-$${WITNESS_BUILD##*/} \
	  WITNESS_REPLAY_UNTIL=$$(($$(date +%s) + 2100)) && rebar3 ct --suite=test/witness_replay_SUITE --group=programs && \
	  rebar3 ct --suite=test/witness_replay_elixir_SUITE --group=programs

replay-fuzz: ## 200 recordings of each kind of generated program, 10 replays of each; ends after half an hour, and goes on there
	@$(toolchain) && WITNESS_REPLAY_RECORDINGS=200 WITNESS_REPLAYS=10 WITNESS_REPLAY_DONE=$$PWD/_build/replay-fuzz-$${WITNESS_BUILD##*/} \
	  rebar3 ct --suite=test/witness_replay_SUITE --group=generated

deep-search: ## Search each program of the tests a hundred times: the same steps each time; ends after some 35 minutes, and goes on there
	@$(toolchain) && WITNESS_SEARCH_REPEATS=$${WITNESS_SEARCH_REPEATS:-100} WITNESS_SEARCH_DONE=$$PWD/_build/deep-search-$${WITNESS_BUILD##*/} \
	  WITNESS_SEARCH_UNTIL=$$(($$(date +%s) + $${WITNESS_SEARCH_SECONDS:-2100})) rebar3 ct --suite=test/witness_search_repeat_SUITE

concuerror: ## Record and replay the programs of Concuerror's test suites three times: make concuerror SOURCE=DIR, with its source
	@WITNESS_RECORDINGS=$${WITNESS_RECORDINGS:-3} bench/concuerror "$(SOURCE)"

otp-programs: ## Record and replay small programs over OTP three times, by the command
	@bench/otp

replay-service: ## Record a service under load for half an hour, and replay the recording to its end
	@bench/booking/run

trust: ## 3,000 recordings with forged checksums, never the same, and those made by hand: no code runs, nothing crashes, memory is bounded
	@$(toolchain) && WITNESS_FORGED=3000 WITNESS_FORGED_SEED=$$(date +%s) rebar3 ct --suite=test/witness_trust_SUITE \
	  --case=recordings_made_by_hand_run_nothing,forged_sizes_take_no_memory,recordings_that_are_mutated_run_nothing

native-asan: ## The suites that use native code most, with it under the address sanitizer
	@$(toolchain) && test/native/vm

native-stress: ## Native code for a quarter of an hour: threads, fuzzer, races, ten million processes
	@$(toolchain) && test/native/check 60 && WITNESS_NATIVE_PROCESSES=10000000 WITNESS_NATIVE_SECONDS=300 \
	  rebar3 ct --suite=test/witness_trace_native_SUITE --case=short_lived_processes_leave_nothing,races

bench: ## The benchmark suite for this machine: tables, and raw data in _build/bench/laptop; goes on where it was interrupted
	@bin/witness bench laptop --output _build/bench/laptop

bench-smoke: ## Every mode of the benchmark suite once, under a small load
	@bin/witness bench smoke --output _build/bench/smoke

bench-perturbation: ## Measure what measuring does to the system
	@$(toolchain) && bench/perturbation

bench-overhead: ## Measure what watching costs, against the same system unwatched
	@$(toolchain) && bench/overhead

bench-modes: ## Measure inline, central and outline monitoring side by side
	@$(toolchain) && bench/modes

bench-inline: ## Measure where the time of inline monitoring goes: an event, a birth, the life of the tree
	@$(toolchain) && bench/inline

bench-latency: ## Measure the time from an event to its verdict
	@$(toolchain) && bench/latency

bench-deadlines: ## Measure how late missed deadlines are told, with 100,000 open at a time, and what an event with a deadline costs
	@$(toolchain) && bench/deadlines

bench-functions: ## Measure what a call and a return cost as events, beside a message, over both sources
	@$(toolchain) && bench/functions

bench-timescales: ## Measure an event of a property with let, with bounds of 10, 100 and 1000, beside Reelay, which pip fetches
	@$(toolchain) && bench/timescales

bench-overload: ## Measure what monitors that cannot keep up do to the system
	@$(toolchain) && bench/overload

bench-behind: ## Measure from which load on central monitoring falls behind
	@$(toolchain) && bench/behind

bench-monitors: ## Measure compiled monitors against the same ones written by hand
	@$(toolchain) && bench/monitors

bench-logs: ## Measure how fast logs are checked, and in how much memory
	@$(toolchain) && bench/logs

bench-savina: ## Measure how long the benchmarks of the Savina suite take, unwatched
	@$(toolchain) && bench/savina/run

bench-record: ## Measure what recording costs: the benchmarks of the Savina suite, unrecorded against recorded
	@$(toolchain) && bench/record

bench-tables: ## Measure what recording costs processes that do nothing but write and read a table
	@bench/tables

bench-replay: ## Measure what a replay takes: the same benchmarks, unrecorded against replayed, and its memory
	@$(toolchain) && bench/replay somns 3 memory

bench-step: ## Measure how long one waits while stepping through a run of a million steps
	@bench/step

bench-search: ## Search Concuerror's test suites for errors, beside Concuerror: make bench-search SOURCE=DIR, with its source
	@WITNESS_CONCUERROR="$(SOURCE)" bench/search

bench-search-behaviours: ## Search small programs with one race each, and their repaired twins: how many schedules a race takes
	@bench/search-behaviours

bench-search-libraries: ## Search uses of libraries: make bench-search-libraries SOURCE=DIR, with checkouts of their sources
	@WITNESS_LIBRARIES="$(SOURCE)" bench/search-libraries

bench-acme-air: ## Measure what recording costs a web service, and replay a recording of ten minutes
	@$(toolchain) && bench/acme-air/run

clean: ## Remove what was built here; the toolchain stays in the cache
	@rm -rf _build
