// A master and two workers, goroutines with channels, that log themselves for Witness.
//
//	go run counter.go LOG [--wrong]
//
// The master sends numbered requests, and a worker answers each with the next number. With --wrong one of the workers
// makes a mistake. What keeps the log in order: a process logs a fork and a send before it does them, and a receive
// after it has happened; and a line is written as a whole.
package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

const requests = 20

type fields map[string]any

type letter struct {
	from    string
	message any
}

var (
	wrong     = len(os.Args) > 2 && os.Args[2] == "--wrong"
	begin     = time.Now()
	logLock   sync.Mutex
	logLines  *json.Encoder
	mailboxes = map[string]chan letter{
		"master": make(chan letter, 100), "worker 1": make(chan letter, 100), "worker 2": make(chan letter, 100),
	}
)

func log(event, process string, line fields) {
	line["event"] = event
	line["process"] = process
	logLock.Lock()
	defer logLock.Unlock()
	line["time"] = time.Since(begin).Nanoseconds()
	if err := logLines.Encode(line); err != nil {
		panic(err)
	}
}

func send(process, to string, message any) {
	log("send", process, fields{"to": to, "message": message})
	mailboxes[to] <- letter{process, message}
}

func receive(process string) letter {
	received := <-mailboxes[process]
	log("recv", process, fields{"from": received.from, "message": received.message})
	return received
}

func spawn(parent, child, function string, argument int, behaviour func(string, int), done *sync.WaitGroup) {
	called := func(more fields) fields {
		more["module"], more["function"], more["args"] = "counter", function, []int{argument}
		return more
	}
	log("fork", parent, called(fields{"child": child}))
	done.Add(1)
	go func() {
		defer done.Done()
		log("init", child, called(fields{"parent": parent}))
		behaviour(child, argument)
		log("exit", child, fields{"reason": "normal"})
	}()
}

func worker(self string, number int) {
	for {
		received := receive(self)
		request, isRequest := received.message.(map[string]int)
		if !isRequest {
			return
		}
		answer := request["request"] + 1
		if wrong && number == 2 && request["request"] == 14 {
			answer++
		}
		send(self, received.from, map[string]int{"answer": answer})
	}
}

func master(self string, requests int) {
	workers := []string{"worker 1", "worker 2"}
	var running sync.WaitGroup
	for index, name := range workers {
		spawn(self, name, "worker", index+1, worker, &running)
	}
	for first := 1; first < requests; first += 2 {
		for index, name := range workers {
			send(self, name, map[string]int{"request": first + index})
		}
		for range workers {
			receive(self)
		}
	}
	for _, name := range workers {
		send(self, name, "stop")
	}
	running.Wait()
}

func main() {
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	logLines = json.NewEncoder(file)
	log("init", "master", fields{"parent": nil, "module": "counter", "function": "master", "args": []int{requests}})
	master("master", requests)
	log("exit", "master", fields{"reason": "normal"})
	if err := file.Close(); err != nil {
		panic(err)
	}
}
