import { render } from "preact";
import type { Report } from "./data";
import { Page } from "./page";
import "./style.css";

const report: Report = JSON.parse(document.getElementById("data")!.textContent!);
document.title = `${report.sentence} ${report.subject}`;
render(<Page report={report} />, document.getElementById("report")!);
