import { render } from "preact";
import { Bench, headline } from "./bench";
import type { BenchReport } from "./bench-data";
import type { Report } from "./data";
import { Page } from "./page";
import "./style.css";

const report: Report | BenchReport = JSON.parse(document.getElementById("data")!.textContent!);
const root = document.getElementById("report")!;
if ("kind" in report) {
  document.title = `${report.measured[0].name}: ${headline(report).text}`;
  render(<Bench report={report} />, root);
} else {
  document.title = `${report.sentence} ${report.subject}`;
  render(<Page report={report} />, root);
}
