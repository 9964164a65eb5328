/* A client of `callmark stdio` in C, with nothing but POSIX: client COMMAND ARGUMENT...
 *
 * Parses, reads a stream in pieces, and runs a session whose model and tool live here. Prints what it found, one line
 * for each step. It holds as much JSON as it needs: strings are escaped on their way out, and a value is found by its
 * key on its way in, at the outermost level of the object that it is asked for. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *to, *from;
static char *line;
static size_t room;

/* Returns what stands behind the JSON value at `at`. */
static const char *after(const char *at) {
  int depth = 0;
  do {
    if (*at == '"') {
      for (at++; *at != '"'; at++)
        if (*at == '\\') at++;
      at++;
    } else if (*at == '{' || *at == '[') {
      depth++, at++;
    } else if (*at == '}' || *at == ']') {
      depth--, at++;
    } else if (isspace((unsigned char)*at) || *at == ',' || *at == ':') {
      at++;
    } else {
      at += strcspn(at, ",]} \n");
    }
  } while (depth > 0 && *at);
  return at;
}

/* Returns the value of a key of the object at `at`, or NULL. */
static const char *member(const char *at, const char *key) {
  size_t length = strlen(key);
  if (!at || *at != '{') return NULL;
  for (at++; *at == '"' || *at == ',';) {
    if (*at == ',') at++;
    const char *name = at + 1;
    at = after(at) + 1; /* the key, and its colon */
    if (!strncmp(name, key, length) && name[length] == '"') return at;
    at = after(at);
  }
  return NULL;
}

/* Returns the item at a place of the array at `at`, or NULL. */
static const char *item(const char *at, int place) {
  if (!at || *at != '[' || at[1] == ']') return NULL;
  for (at++; place-- > 0; at++)
    if (*(at = after(at)) != ',') return NULL;
  return at;
}

static int is(const char *at, const char *json) {
  return at && (size_t)(after(at) - at) == strlen(json) && !strncmp(at, json, strlen(json));
}

static void show(const char *what, const char *at) {
  printf("%s %.*s\n", what, at ? (int)(after(at) - at) : 4, at ? at : "none");
}

static void string(const char *text) {
  for (fputc('"', to); *text; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', to);
    if ((unsigned char)*text < 32)
      fprintf(to, "\\u%04x", *text);
    else
      fputc(*text, to);
  }
  fputc('"', to);
}

static void finish(void) {
  fputs("}\n", to);
  fflush(to);
}

static void begin(int id, const char *method, const char *params) {
  fprintf(to, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":%s", id, method, params);
}

static const char *next(void) {
  if (getline(&line, &room, from) < 0) {
    fputs("the server is gone\n", stderr);
    exit(1);
  }
  return line;
}

static const char *result(void) {
  const char *found = member(next(), "result");
  if (!found) fprintf(stderr, "expected a result, found %s", line), exit(1);
  return found;
}

static void answer(const char *request, const char *json) {
  const char *id = member(request, "id");
  fprintf(to, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s", (int)(after(id) - id), id, json);
  finish();
}

int main(int count, char **words) {
  int in[2], out[2];
  if (count < 2 || pipe(in) || pipe(out)) return 2;
  if (fork() == 0) {
    dup2(in[0], 0), dup2(out[1], 1);
    close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    execvp(words[1], words + 1);
    _exit(127);
  }
  close(in[0]), close(out[1]);
  to = fdopen(in[1], "w"), from = fdopen(out[0], "r");

  begin(1, "initialize", "{}"), finish();
  show("protocol", member(member(result(), "versions"), "protocol"));

  begin(2, "parse", "{\"text\":"), string("He said \"hi\".\n[CALL: f({\"a\": \"]\"})]"), fputs("}", to), finish();
  const char *events = member(result(), "events"), *event;
  for (int place = 0; (event = item(events, place)); place++)
    if (is(member(event, "type"), "\"call\"")) show("call", member(event, "arguments"));

  begin(3, "stream/open", "{\"stream\":\"s\"}"), finish(), result();
  const char *pieces[] = {"[CALL: f(a", "=1, b=", "two)]"};
  for (int number = 0; number < 3; number++) {
    begin(4, "stream/feed", "{\"stream\":\"s\",\"text\":"), string(pieces[number]), fputs("}", to), finish();
    events = member(result(), "events");
    for (int place = 0; (event = item(events, place)); place++) show("event", member(event, "type"));
  }
  begin(5, "stream/close", "{\"stream\":\"s\"}"), finish(), result();

  begin(6, "nothing", "{}"), finish();
  show("error", member(member(member(next(), "error"), "data"), "code"));

  begin(7, "session/open", "{\"session\":\"s\",\"events\":false,\"tools\":[{\"name\":\"add\",\"mode\":\"read\",\"parameters\":"
                           "{\"properties\":{\"a\":{\"type\":\"integer\"}}}}]}");
  finish(), result();
  begin(8, "session/run", "{\"session\":\"s\",\"text\":\"What is 40 and 2?\"}"), finish();
  const char *says = "{\"text\":\"[CALL: add(a=40)]\"}", *done;
  while (!(done = member(next(), "result"))) {
    const char *method = member(line, "method"), *params = member(line, "params");
    if (is(method, "\"model/generate\"")) {
      answer(line, says);
      says = "{\"text\":\"It is 42.\"}";
    } else if (is(method, "\"tool/invoke\"")) {
      char sum[32];
      show("invoke", member(params, "name"));
      snprintf(sum, sizeof sum, "%ld", strtol(member(member(params, "arguments"), "a"), NULL, 10) + 2);
      answer(line, sum);
    }
  }
  show("answer", member(done, "answer"));

  int status;
  fclose(to);
  wait(&status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
